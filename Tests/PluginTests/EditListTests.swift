// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

/// Edit lists (ISO/IEC 14496-12, 8.6.6) with several edits, which play parts of a file one after the other: what they hide is
/// neither shown nor heard, and no step of the timeline.
@Suite struct EditListTests {
    /// A part of the track, or a pause where `begin` is nil; in seconds.
    typealias Edit = (length: Double, begin: Double?)

    /// Two seconds, a keyframe each 20 pictures, with B-frames and sound, and these edits in both tracks. The first picture
    /// lies at 0.08 s.
    private static func make(_ edits: [Edit], in folder: ScratchFolder) throws -> String {
        let path = try FileSourceAudioTests.clip(
            "a.mp4", in: folder, "-bf", "2", "-sc_threshold", "0", "-c:a", "aac", "-ar", "48000")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        try rewrite(bytes, edits).write(to: URL(fileURLWithPath: folder.file("edited.mp4")))
        return folder.file("edited.mp4")
    }

    private static func number(_ bytes: Data, at place: Int) -> Int {
        bytes[(bytes.startIndex + place)..<(bytes.startIndex + place + 4)].reduce(0) { $0 << 8 | Int($1) }
    }

    private static func big(_ value: Int) -> Data {
        Data((0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) })
    }

    /// The boxes of a file whose index is behind its pictures, with other edit lists.
    private static func rewrite(_ bytes: Data, _ edits: [Edit], ticks: Int = 0) throws -> Data {
        var (result, place, ticks) = (Data(), 0, ticks)
        while place + 8 <= bytes.count {
            let size = number(bytes, at: place)
            let box = bytes.dropFirst(place).prefix(size)
            let kind = String(decoding: box.dropFirst(4).prefix(4), as: UTF8.self)
            var content = Data(box.dropFirst(8))
            switch kind {
            case "moov": content = try rewrite(content, edits)
            case "trak":
                let head = try #require(content.range(of: Data("mdhd".utf8)))
                content = try rewrite(
                    content, edits, ticks: number(content, at: head.upperBound - content.startIndex + 12))
            case "edts": content = try rewrite(content, edits, ticks: ticks)
            case "elst":
                content = big(0) + big(edits.count)
                for edit in edits {
                    content += big(Int(edit.length * 1000)) + big(edit.begin.map { Int($0 * Double(ticks)) } ?? -1)
                    content += big(1 << 16)
                }
            default: break
            }
            result += big(content.count + 8) + Data(kind.utf8) + content
            place += max(size, 8)
        }
        return result
    }

    /// When decoded sound ends.
    private static func heard(_ path: String) throws -> [HeardBlock] {
        let sound = try StageDriver(FileSound.self, options: #"{ "path": "\#(path)" }"#)
        var blocks: [HeardBlock] = []
        while try sound.produce() != .ended { blocks += sound.takeBlocks() }
        return blocks + sound.takeBlocks()
    }

    @Test(
        .needsFFmpeg,
        arguments: [
            [(0.6, 0.28), (0.6, 1.28)], [(0.4, 0.48), (0.4, 0.48), (0.4, 0.48)], [(0.6, 1.28), (0.6, 0.28)],
        ] as [[Edit]])
    func playsTheEditsBehindEachOther(edits: [Edit]) throws {
        let folder = try ScratchFolder()
        let path = try Self.make(edits, in: folder)
        let whole = try ClipMaker.play(folder.file("a.mp4")).pictures
        let shown = edits.flatMap { edit in
            let first = Int(((edit.begin! - 0.08) * 25).rounded())
            return whole[first..<first + Int((edit.length * 25).rounded())].map(\.hash)
        }
        let (_, pictures, events) = try ClipMaker.play(path)
        #expect(pictures.map(\.hash) == shown)
        #expect(pictures.indices.allSatisfy { abs(pictures[$0].pts.seconds - Double($0) * 0.04) < 0.001 })
        #expect(events.allSatisfy { $0.name != "times-step" && $0.name != "times-corrected" })

        let blocks = try Self.heard(path)
        #expect(abs(blocks.last!.pts.seconds + blocks.last!.duration.seconds - 1.2) < 0.022)
        #expect(zip(blocks, blocks.dropFirst()).allSatisfy { abs(($0.pts + $0.duration - $1.pts).seconds) < 0.022 })
        let copied = try FileSourceAudioTests.packets(path).filter { $0.pts >= 0 }
        #expect(zip(copied, copied.dropFirst()).allSatisfy { abs($1.pts - $0.pts - 1024) < 1024 })
        #expect(abs(Double(copied.last!.pts + 1024) / 48_000 - 1.2) < 0.022)

        // Undecoded, what later pictures do not need is left out, and the others end where they are shown.
        let (_, units, _, _) = try FileSourceUnitsTests.play(path)
        #expect(FileSourceUnitsTests.rise(units))
        let end = units.map { $0.pts + $0.duration }.max()!
        #expect(end.seconds > 1.15 && end.seconds < 1.33)
        let error = #expect(throws: FrameHostError.self) {
            try FileSourceUnitsTests.play(path, options: #", "start": 0.5"#)
        }
        #expect(error?.what.contains("plays several parts of its pictures one after the other") == true)
    }

    /// A film whose end was cut off: only what the last pictures need of it goes on, up to three pictures.
    @Test(.needsFFmpeg) func leavesOutWhatIsBehindTheEnd() throws {
        let folder = try ScratchFolder()
        let (_, units, _, _) = try FileSourceUnitsTests.play(try Self.make([(1, 0.08)], in: folder))
        #expect(units.count >= 25 && units.count <= 28)
        #expect(units.map(\.pts).max()!.seconds < 1.12)
    }

    /// A film that begins late, in the middle of what is there: all before its first picture lies before 0.
    @Test(.needsFFmpeg) func hidesWhatIsBeforeALateBegin() throws {
        let folder = try ScratchFolder()
        let path = try Self.make([(0.5, nil), (1, 0.48)], in: folder)
        let (_, units, _, _) = try FileSourceUnitsTests.play(path)
        #expect(FileSourceUnitsTests.rise(units))
        let hidden = units.filter { $0.pts < .zero }
        #expect(hidden.count == 10 && hidden.allSatisfy { $0.pts.seconds > -0.05 })
        #expect(abs(units.map(\.pts).filter { $0 >= .zero }.min()!.seconds - 0.5) < 0.001)
        let first = try #require(try Self.heard(path).first)
        #expect(abs(first.pts.seconds - 0.5) < 0.001)
        #expect(try FileSourceAudioTests.packets(path).first!.pts > 22_500)
    }
}
