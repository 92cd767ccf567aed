// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The page by which a person answers for a result: what was covered in each frame and why, and pictures of the moments
/// that are worth a look, in one file of HTML.
///
/// The pictures show what goes out, never more. A run that does not come to its end leaves a page that says so: the
/// style that hides that sentence is written last.
final class ReviewPage {
    /// Long side of a moment's picture.
    private static let longSide = 320
    /// The longest line: the covers of a frame, at most 200 bytes each.
    private static let longestLine = 80 << 10

    private let out: LineWriter
    private let small: SmallPicture
    /// For pictures that are stored upright or turned by 180°, and for those on their side.
    private let jpeg: SmallJPEG
    private let turnedJPEG: SmallJPEG
    private let pixels: UnsafeMutablePointer<UInt8>
    private var moments = ReviewMoments()
    private var modes = [Int](repeating: 0, count: PrivacyGuard.Mode.allCases.count)
    private var untouched = 0
    private var smallest: Double?
    private var largest: Double?
    private var leastConfidence: Double?
    private let reach: String

    /// [control thread] Creates or empties the file and writes the page's head.
    ///
    /// - Parameters:
    ///   - reach: What was searched for, as a sentence.
    ///   - stage: The stage's id.
    /// - Throws: ``FrameHostError``.
    init(
        path: String, _ format: VideoFormat, reach: String, chain: String, _ files: RunFiles, as stage: String,
        unless isEnded: () -> Bool
    ) throws {
        out = try LineWriter(path: path, files, as: stage, unless: isEnded)
        small = SmallPicture(format, size: SmallPicture.squareSize(format, longSide: Self.longSide))
        jpeg = try SmallJPEG(width: small.width, height: small.height)
        turnedJPEG = try SmallJPEG(width: small.height, height: small.width)
        pixels = .allocate(capacity: small.width * small.height * 3)
        pixels.initialize(repeating: 0, count: small.width * small.height * 3)
        self.reach = reach
        try out.write(Self.head(title: "\(chain): faces, \(stage)"))
    }

    deinit { pixels.deallocate() }

    /// Memory that the pictures of moments can take: 24 KB each.
    static let pictureBytes = ReviewMoments.mostOfAKind * TwoWayGuard.Moment.Kind.allCases.count * 24_000

    /// [stage thread] Adds one frame, as it goes out. Allocates only for a frame with moments.
    ///
    /// - Parameters:
    ///   - map: How the frame lies.
    ///   - picture: The frame's picture, with all covers.
    func add(_ plan: TwoWayGuard.Plan, frame: UInt64, pts: MediaTime, _ map: UprightMap, _ picture: Picture) throws {
        modes[plan.mode.rawValue] += 1
        if !plan.mode.coversAll, plan.covers.isEmpty { untouched += 1 }
        try writeLine(plan, frame: frame, pts: pts, map)
        for moment in plan.moments where moments.note(moment) {
            let entry = ReviewMoments.Entry(
                moment: moment, frame: frame, seconds: pts.seconds,
                size: small.uprightSize(map.orientation), picture: try still(of: picture, map, moment.box))
            moments.keep(entry)
        }
    }

    private func writeLine(_ plan: TwoWayGuard.Plan, frame: UInt64, pts: MediaTime, _ map: UprightMap) throws {
        try out.reserve(Self.longestLine)
        out.put("{\"frame\":")
        out.put(whole: Int64(clamping: frame))
        out.put(",\"pts\":")
        out.put(pts.seconds, places: 6)
        out.put(",\"mode\":\"")
        out.put(plan.mode.staticName)
        out.put("\",\"faces\":[")
        var isFirst = true
        for cover in plan.covers {
            if !isFirst { out.put(",") }
            isFirst = false
            out.put("{\"face\":")
            out.put(whole: Int64(cover.serial))
            out.put(",\"how\":\"")
            out.put(cover.how.name)
            out.put("\",\"box\":")
            out.put(map.upright(cover.box))
            out.put(",\"size\":")
            out.put(cover.box.size, places: 1)
            out.put(",\"confidence\":")
            out.put(cover.confidence, places: 3)
            out.put("}")
            if cover.how == .found {
                smallest = min(smallest ?? .infinity, cover.box.size)
                largest = max(largest ?? 0, cover.box.size)
                leastConfidence = min(leastConfidence ?? 1, cover.confidence)
            }
        }
        out.put("]}\n")
    }

    /// A small copy of the picture as JPEG, with a frame drawn around `box`.
    private func still(of picture: Picture, _ map: UprightMap, _ box: FaceRect) throws -> [UInt8] {
        small.take(picture)
        small.writeBGR(picture, to: pixels, map.orientation)
        let size = small.uprightSize(map.orientation)
        let there = map.upright(box.grown(0.4)).scaled(
            Double(size.width) / Double(map.width), Double(size.height) / Double(map.height))
        func within(_ value: Double, _ most: Int) -> Int { Int(min(max(value, 0), Double(most - 1))) }
        let (left, right) = (within(there.x, size.width), within(there.right, size.width))
        let (top, bottom) = (within(there.y, size.height), within(there.bottom, size.height))
        func dot(_ x: Int, _ y: Int) {
            let pixel = pixels + (y * size.width + x) * 3
            (pixel[0], pixel[1], pixel[2]) = (0, 140, 255)
        }
        for x in left...max(left, right) {
            dot(x, top)
            dot(x, bottom)
        }
        for y in top...max(top, bottom) {
            dot(left, y)
            dot(right, y)
        }
        return try (map.orientation.swapsSides ? turnedJPEG : jpeg).write(pixels)
    }

    /// [stage thread] Writes the rest of the page and closes the file.
    ///
    /// - Parameters:
    ///   - covers: How many covers all frames had, by ``TwoWayGuard/How``.
    ///   - isWhole: Whether the run came to its end by itself. Otherwise the page says that it did not.
    func close(covers: [Int], isWhole: Bool) throws {
        defer { try? out.close() }
        try out.write("</pre></details>\n")
        try out.write(summary(covers: covers))
        let all = moments.entries.flatMap { $0 }.sorted {
            ($0.frame, $0.moment.kind.rawValue) < ($1.frame, $1.moment.kind.rawValue)
        }
        try out.write("<section id=\"moments\"><h2>Look at these</h2>\n")
        if all.isEmpty { try out.write("<p>No moment stands out.</p>\n") }
        for kind in TwoWayGuard.Moment.Kind.allCases where moments.counts[kind.rawValue] > 0 {
            let (count, shown) = (moments.counts[kind.rawValue], moments.entries[kind.rawValue].count)
            let rest = count > shown ? ", \(shown) of them shown" : ""
            try out.write("<p><b>\(kind.title)</b>: \(count)\(rest). \(kind.meaning)</p>\n")
        }
        for entry in all {
            try out.write(
                "<figure><img alt=\"\" width=\"\(entry.size.width)\" height=\"\(entry.size.height)\" src=\"data:image/jpeg;base64,"
            )
            try out.write(Base64.encode(entry.picture))
            try out.write(
                "\"><figcaption>\(entry.moment.kind.title)<br>frame \(entry.frame), \(Self.time(entry.seconds))"
                    + (entry.moment.kind == .whole
                        ? "" : ", face \(entry.moment.serial), \(Int(entry.moment.box.size.rounded())) px")
                    + "</figcaption></figure>\n")
        }
        try out.write("</section>\n")
        if isWhole { try out.write("<style>#unfinished{display:none}</style>\n") }
        try out.write("</body></html>\n")
        try out.close()
    }

    private func summary(covers: [Int]) -> String {
        let frames = modes.reduce(0, +)
        func mode(_ mode: PrivacyGuard.Mode) -> Int { modes[mode.rawValue] }
        func how(_ how: TwoWayGuard.How) -> Int { covers[how.rawValue] }
        let whole = PrivacyGuard.Mode.allCases.filter(\.coversAll)
        var rows = [
            ("frames", "\(frames)"),
            ("searched in time", "\(mode(.searched) + mode(.held))"),
            (
                "covered completely",
                "\(whole.reduce(0) { $0 + mode($1) }) (\(whole.map { "\($0.name) \(mode($0))" }.joined(separator: ", ")))"
            ),
            ("passed on unchanged, since no face was known in them", "\(untouched)"),
            ("faces in frames, found by the frame's own search", "\(how(.found))"),
            ("covered before the face was found", "\(how(.before))"),
            ("bridged between two detections", "\(how(.bridged))"),
            ("held after the face was lost", "\(how(.held))"),
            ("faces that no search saw", "unknown"),
        ]
        if let smallest, let largest, let leastConfidence {
            rows.append(("size of the faces found", "\(Int(smallest.rounded())) to \(Int(largest.rounded())) px"))
            rows.append(("lowest confidence of a detection", "0.\(String(format2(leastConfidence)))"))
        }
        return "<section id=\"summary\"><h2>What was covered</h2><table>\n"
            + rows.map { "<tr><td>\($0.0)</td><td>\($0.1)</td></tr>\n" }.joined()
            + "</table><p>\(reach.isEmpty ? "" : Self.escaped(reach) + ". ")A face that no search saw is not counted here. It is visible in the picture, unless the cover of another face hides it.</p></section>\n"
    }

    /// Hundredths of a number from 0 to 1.
    private func format2(_ value: Double) -> String {
        let hundredths = min(max(Int((value * 100).rounded()), 0), 99)
        return hundredths < 10 ? "0\(hundredths)" : "\(hundredths)"
    }

    private static func time(_ seconds: Double) -> String {
        let tenths = Int64((min(max(seconds, 0), 1e9) * 10).rounded())
        let (minutes, rest) = (tenths / 600, tenths % 600)
        return "\(minutes):\(rest / 10 < 10 ? "0" : "")\(rest / 10).\(rest % 10)"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }

    private static func head(title: String) -> String {
        """
        <!DOCTYPE html>
        <html lang="en"><head><meta charset="utf-8"><title>\(escaped(title))</title>
        <meta name="viewport" content="width=device-width">
        <style>
        body{font:16px/1.4 system-ui,sans-serif;margin:1.5em;display:flex;flex-direction:column;color:#222;background:#fff}
        table{border-collapse:collapse}td{padding:.15em 1em .15em 0;border-bottom:1px solid #ddd}
        figure{display:inline-block;margin:.5em 1em .5em 0;vertical-align:top}figcaption{font-size:.85em}
        #frames{order:3}#moments{order:2}#summary{order:1}#unfinished{color:#a00;font-weight:bold}
        pre{font-size:.75em;overflow-x:auto}img{display:block;max-width:100%;height:auto}
        </style></head><body>
        <h1>\(escaped(title))</h1>
        <p id="unfinished">The run did not finish: this page is incomplete.</p>
        <details id="frames"><summary>Every frame, a line of JSON each</summary>
        <p>found: this frame's own search saw the face. before: a later search saw it first. bridged: earlier and later searches saw it. held: an earlier search saw it. Boxes are x, y, width, height in pixels of the upright picture, without margin.</p>
        <pre id="lines">

        """
    }
}

extension TwoWayGuard.Moment.Kind {
    /// As a heading.
    var title: String {
        switch self {
        case .beginsLate: "A face begins"
        case .bridgedLong: "A long gap"
        case .unsure: "An unsure face"
        case .lost: "A face is lost"
        case .whole: "The whole frame"
        }
    }

    /// What a person should look for.
    var meaning: String {
        switch self {
        case .beginsLate:
            "The face appears inside the picture, without a cut: check whether it is uncovered in the frames before."
        case .bridgedLong:
            "No search saw the face for half a second or more: check whether the cover stays on the face."
        case .unsure: "The detector was unsure: check whether what is covered is a face."
        case .lost: "The face was lost inside the picture: check whether it is still there, uncovered."
        case .whole: "The frame was not searched in time, the detector failed, or there were too many faces."
        }
    }
}

/// RFC 4648, 4, with padding and without line breaks.
enum Base64 {
    private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = bytes[start..<min(start + 3, bytes.count)]
            let value = part.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - part.count))
            for place in 0..<4 {
                text.append(
                    place <= part.count ? letters[Int(value >> UInt32(18 - 6 * place) & 63)] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
