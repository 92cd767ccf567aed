// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Why a file gave less than it promises.
enum FileShortfall: Equatable {
    /// Its index has packets that the file has not.
    case missing(Int, of: Int, cause: String)
    case unreadable(cause: String)
    case endsAt(MediaTime, of: MediaTime)
    /// Its header gives a number of bytes that the file has not.
    case bytes(Int64)
    /// There is nothing near some places of its index, the first of them at this time.
    case hole(MediaTime, places: Int)
    /// Its container is damaged or lacks a part.
    case gap(FileGap)
    /// Pictures of its index were read, and did not come out of the decoder.
    case undecoded(Int, of: Int)
    /// No sound came out of the decoder.
    case silent

    /// A sentence without the full stop.
    ///
    /// - Parameter isSound: Whether it is about the sound of a file, not about its pictures.
    func text(_ path: String, isSound: Bool = false) -> String {
        switch self {
        case .endsAt(let end, let length) where isSound:
            "The sound of '\(path)' ends early: at \(end.shortSeconds) s, but its header gives a length of \(length.shortSeconds) s"
        case .silent: "No sound of '\(path)' could be decoded"
        case .missing(let missing, let all, let cause):
            "'\(path)' ends early\(Self.because(cause)); \(missing) of \(all) \(all == 1 ? "picture" : "pictures") in its index \(missing == 1 ? "is" : "are") missing"
        case .unreadable(let cause): "'\(path)' could not be read to its end\(Self.because(cause))"
        case .endsAt(let end, let length):
            "'\(path)' ends early: its pictures end at \(end.seconds) s, but its header gives a length of \(length.seconds) s"
        case .bytes(let count):
            "'\(path)' ends early: by its header it has \(count) more \(count == 1 ? "byte" : "bytes")"
        case .hole(let time, let places):
            "'\(path)' has no picture at \(places == 1 ? "a place" : "\(places) places") of its index, the first at \(time.seconds) s"
        case .gap(let gap):
            "'\(path)' lacks a part\(Self.place(gap)): the container is damaged there, or something was cut out"
        case .undecoded(let count, let all):
            "\(count) of \(all) \(all == 1 ? "picture" : "pictures") of '\(path)' could not be decoded"
        }
    }

    private static func place(_ gap: FileGap) -> String {
        switch (gap.begin?.seconds, gap.end?.seconds) {
        case (let begin?, let end?): " between \(begin) s and \(end) s"
        case (let begin?, nil): " after \(begin) s"
        case (nil, let end?): " before \(end) s"
        case (nil, nil): ""
        }
    }

    private static func because(_ cause: String) -> String { cause.isEmpty ? "" : ": \(cause)" }

    /// The members of the event `file-incomplete`.
    var details: JSONNode {
        switch self {
        case .missing(let missing, _, _): ["missing": .number(missing)]
        case .unreadable: ["missing": .number(0)]
        case .endsAt(let end, let length):
            ["endSeconds": .number(end.seconds), "lengthSeconds": .number(length.seconds)]
        case .bytes(let count): ["missingBytes": .number(count)]
        case .hole(let time, let places): ["holeSeconds": .number(time.seconds), "missing": .number(places)]
        case .gap(let gap):
            .object(
                [("holeSeconds", gap.begin), ("nextSeconds", gap.end)].compactMap { name, time in
                    time.map { (name, .number($0.seconds)) }
                })
        case .undecoded(let count, _): ["missing": .number(count)]
        case .silent: .object([])
        }
    }
}
