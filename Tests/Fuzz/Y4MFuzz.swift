// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

@testable import Y4M

/// A stream of raw video, as the bytes say, through y4m-source into y4m-sink and back: any bytes end in a sentence, and
/// what was read comes back from what is written.
@c(LLVMFuzzerTestOneInput)
public func fuzzY4M(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: bytes, count: count))
    let line = input.prefix { $0 != 10 }
    do throws(Y4MHeader.Fault) {
        let header = try Y4MHeader(Array(line))
        precondition(header.width > 0 && header.height > 0 && header.width * header.height <= Y4MHeader.mostPixels)
        // Large pictures take memory and time, and no other way.
        guard header.width * header.height <= 4096 else { return 0 }
    } catch {
        precondition(!error.what.isEmpty && error.what.utf8.allSatisfy { $0 >= 32 }, "\(error.what)")
    }
    let scratch = Scratch.shared
    scratch.write(input, "in")
    do {
        let (format, pictures) = try Scratch.read("in")
        guard !pictures.isEmpty else { return 0 }
        let sink = try StageDriver(
            Y4MSink.self, options: #"{ "path": "out" }"#, input: .video(format), folder: scratch.folder)
        for (index, picture) in pictures.enumerated() {
            try sink.send(
                sink.makeFrame(pts: format.timeBase.time(ofTicks: Int64(index))) { fill(&$0, picture) })
        }
        try sink.drain()
        try sink.stop()
        let (again, same) = try Scratch.read("out")
        precondition(again.pixelFormat == format.pixelFormat && same == pictures, "other pictures came back")
    } catch {
        precondition(error is FrameHostError || error is FrameHostErrors, "a fault without a sentence: \(error)")
    }
    return 0
}

private func fill(_ frame: inout Frame, _ bytes: [UInt8]) {
    var begin = 0
    for index in 0..<frame.planeCount {
        frame.withMutablePlane(index) { plane in
            for y in 0..<plane.height {
                bytes.withUnsafeBufferPointer {
                    (plane.baseAddress + y * plane.strideBytes).update(
                        from: $0.baseAddress! + begin, count: plane.rowBytes)
                }
                begin += plane.rowBytes
            }
        }
    }
}

/// Where the streams lie.
private struct Scratch {
    static let shared = Scratch()
    let folder: String

    init() {
        let root = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        folder = "\(root)/framehost-fuzz-\(getpid())"
        mkdir(folder, 0o700)
        atexit {
            for name in ["in", "out"] { unlink("\(Scratch.shared.folder)/\(name)") }
            rmdir(Scratch.shared.folder)
        }
    }

    func write(_ bytes: [UInt8], _ name: String) {
        let file = open("\(folder)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(file) }
        precondition(file >= 0 && Glibc.write(file, bytes, bytes.count) == bytes.count, "no scratch file")
    }

    /// Pictures, most.
    private static let most = 64

    /// The bytes of each picture that is whole; what follows it may be a fault.
    static func read(_ name: String) throws -> (VideoFormat, [[UInt8]]) {
        let source = try StageDriver(
            Y4MSource.self, options: #"{ "path": "\#(name)", "rate": 25 }"#, folder: shared.folder)
        defer { try? source.stop() }
        guard let format = source.outputFormat?.video else { preconditionFailure("no video came") }
        precondition(format.impossibility == nil, "\(format)")
        var pictures: [[UInt8]] = []
        while pictures.count < most {
            guard let progress = try? source.produce(), progress == .more else { break }
            while let frame = source.takeFrame() { pictures.append(bytes(of: frame)) }
        }
        return (format, pictures)
    }

    private static func bytes(of frame: borrowing Frame) -> [UInt8] {
        var bytes: [UInt8] = []
        for index in 0..<frame.planeCount {
            frame.withPlane(index) { plane in
                for y in 0..<plane.height {
                    bytes += UnsafeBufferPointer(
                        start: plane.baseAddress + y * plane.strideBytes, count: plane.rowBytes)
                }
            }
        }
        return bytes
    }
}
