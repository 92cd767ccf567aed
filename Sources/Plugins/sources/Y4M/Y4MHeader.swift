// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The first line of a y4m stream (yuv4mpeg(5) of mjpegtools), read and written.
struct Y4MHeader: Equatable {
    var width: Int
    var height: Int
    /// Frames per second; 0 when the stream does not say.
    var rate = Rational(0)
    /// Width of a sample over its height; 0 when the stream does not say.
    var aspect = Rational(0)
    var format = Y4MFormat.planar420
    var chromaSiting: UInt8 = 2
    var range = ColorRange.video
    var isInterlaced = false

    /// The most bytes of the line.
    static let mostBytes = 4096
    /// The most pixels of a picture, as for streams from the network: 8192x8192, or 16384x4096.
    static let mostPixels = 1 << 26
    static let magic = "YUV4MPEG2"

    /// Why a line is not a readable header, as the end of a sentence, and what to do.
    struct Fault: Error, Equatable {
        var what: String
        var remedy = ""
    }

    init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

    /// - Parameter line: Without the line feed. Fields may be in any order; unknown ones are ignored.
    init(_ line: [UInt8]) throws(Fault) {
        let fields = line.split(separator: 32).map { String(decoding: $0, as: UTF8.self) }
        guard fields.first == Self.magic else {
            throw Self.noMagic
        }
        var sides: [Character: Int] = [:]
        self.init(width: 0, height: 0)
        for field in fields.dropFirst() {
            let value = String(field.dropFirst())
            switch field.first! {
            case "W", "H":
                guard let side = Self.number(value), VideoFormat.sides.contains(side) else {
                    throw Fault(
                        what:
                            "has the field \(Self.shown(field)), but a \(field.first == "W" ? "width" : "height") must be a whole number from 1 to 65536",
                        remedy: Self.makeIt)
                }
                sides[field.first!] = side
            case "F":
                rate = try Self.ratio(
                    field, within: VideoFormat.frameRates,
                    "a frame rate must look like F25:1 and be from 1/1000000 to 1000000")
            case "A":
                aspect = try Self.ratio(
                    field, within: VideoFormat.aspectRatios,
                    "a sample aspect ratio must look like A1:1 and be from 1/10000 to 10000")
            case "I": isInterlaced = ["t", "b", "m"].contains(value)
            case "C": (format, chromaSiting) = try Self.samples(value)
            case "X": if value == "COLORRANGE=FULL" { range = .full }
            default: break
            }
        }
        guard let width = sides["W"], let height = sides["H"] else {
            throw Fault(what: "must give the size of its pictures (W and H)", remedy: Self.makeIt)
        }
        guard width <= Self.mostPixels / height else {
            throw Fault(
                what: "has pictures of \(width)x\(height), but a picture must have at most \(Self.mostPixels) pixels",
                remedy: "Let ffmpeg scale them: '-vf scale=\(width < height ? "-2:3840" : "3840:-2")'")
        }
        (self.width, self.height) = (width, height)
    }

    /// - Parameter line: The part of the line that was read.
    static func fault(ofLongLine line: [UInt8]) -> Fault {
        guard line.starts(with: magic.utf8) else { return noMagic }
        return Fault(what: "has a first line of more than \(mostBytes) bytes", remedy: makeIt)
    }

    private static let noMagic = Fault(
        what: "must start with \(magic)",
        remedy:
            "\(makeIt). If your program already writes y4m, this stage started to read in the middle of the stream: start that program and the chain again, together"
    )
    static let makeIt = "Let ffmpeg write the stream: '-f yuv4mpegpipe'"

    private static func samples(_ word: String) throws(Fault) -> (Y4MFormat, UInt8) {
        if let known = Y4MFormat.words.first(where: { $0.word == word }) { return (known.format, known.siting) }
        let words = Y4MFormat.words.map { "C\($0.word)" }.joined(separator: ", ")
        throw Fault(
            what: "has the field \(shown("C\(word)")), which must be one of \(words)",
            remedy: "Let ffmpeg convert the pictures: '-pix_fmt yuv420p'")
    }

    /// `F30000:1001`; 0:0 is "unknown".
    private static func ratio(_ field: String, within range: ClosedRange<Double>, _ rule: String) throws(Fault)
        -> Rational
    {
        let parts = field.dropFirst().split(separator: ":", omittingEmptySubsequences: false).map { number(String($0)) }
        if parts.count == 2, let over = parts[0], let under = parts[1] {
            if over == 0 || under == 0 { return Rational(0) }
            let ratio = Rational(Int32(over), Int32(under))
            if range.contains(ratio.value) { return ratio }
        }
        throw Fault(what: "has the field \(shown(field)), but \(rule)", remedy: makeIt)
    }

    /// Only decimal digits, up to Int32.max.
    private static func number(_ text: String) -> Int? {
        guard (1...10).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }),
            let value = Int(text), value <= Int(Int32.max)
        else { return nil }
        return value
    }

    /// Text from outside in a message: printable, and short.
    private static func shown(_ text: String) -> String {
        let plain = text.unicodeScalars.prefix(40).map { (33...126).contains($0.value) ? Character($0) : "?" }
        return "'\(String(plain))'"
    }

    // MARK: Writing

    /// The header for pictures of a chain, which have a frame rate; nil for RGB.
    init?(_ video: VideoFormat) {
        guard let format = Y4MFormat(video.pixelFormat) else { return nil }
        self.init(width: video.width, height: video.height)
        rate = video.frameRate
        aspect = video.sampleAspectRatio
        self.format = format
        chromaSiting = video.color.chromaSiting
        range = video.color.range
    }

    /// The line with its line feed.
    var line: String {
        let shape = aspect.isZero ? "0:0" : "\(aspect.numerator):\(aspect.denominator)"
        return "\(Self.magic) W\(width) H\(height) F\(rate.numerator):\(rate.denominator) Ip A\(shape)"
            + " C\(format.word(siting: chromaSiting)) XCOLORRANGE=\(range == .full ? "FULL" : "LIMITED")\n"
    }

    // MARK: In the chain

    /// - Parameter rate: Used in place of the stream's rate.
    func videoFormat(rate: Rational) -> VideoFormat {
        VideoFormat(
            format.pixelFormat, width: width, height: height, frameRate: rate,
            timeBase: TimeBase(rate.denominator, rate.numerator),
            color: ColorDescription(range: range, chromaSiting: chromaSiting), sampleAspectRatio: aspect)
    }
}
