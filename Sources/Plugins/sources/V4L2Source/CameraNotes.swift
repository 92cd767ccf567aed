// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a chain is told of a camera when it is planned.
enum CameraNotes {
    /// What is asked for instead of the usual, on a machine with one processor; nil where the options say all.
    static func spared(_ options: V4L2SourceOptions, _ asked: AskedMode) -> String? {
        let spared = [
            options.size == nil ? "\(asked.size) instead of 1280x720" : nil,
            options.rate == nil ? "15 frames per second instead of 30" : nil,
        ].compactMap { $0 }
        guard !spared.isEmpty else { return nil }
        return "this machine has only one processor, so the stage requests \(spared.joined(separator: " and "))"
    }

    /// Whether pictures are copied, and why.
    ///
    /// - Parameter takesOurs: Whether the driver writes into the chain's buffers; nil where it does not say.
    static func copies(_ layout: DriverLayout, _ format: VideoFormat, takesOurs: Bool?) -> String {
        if layout.pixels == .mjpeg { return "JPEG pictures are decoded into the chain's buffers, without another copy" }
        guard layout.fits(format) else {
            let plane = layout.planes.indices.first {
                layout.planes[$0].strideBytes != format.strideBytes(plane: $0)
            }
            guard let plane else {
                return
                    "1 copy per frame: the driver's pictures of \(layout.imageBytes) bytes are larger than the chain's buffers"
            }
            return
                "1 copy per frame: in plane \(plane) the driver's stride is \(layout.planes[plane].strideBytes) bytes, the chain's \(format.strideBytes(plane: plane))"
        }
        return switch takesOurs {
        case true: "no copy: the driver writes into the chain's buffers"
        case false: "1 copy per frame: the driver cannot write into the chain's buffers"
        case nil:
            "the driver does not report whether it can write into the chain's buffers: no copy if it can, otherwise 1 copy per frame"
        }
    }

    static func claim(_ path: String, _ calls: any DeviceCalls) -> StageDemand.Claim {
        StageDemand.Claim(
            "camera \(calls.realPath(path) ?? path)", option: "device",
            what: "uses the camera '\(path)', as does",
            remedy:
                "Only one source can use a camera. Leave this stage out and name the other one in 'from' of the stages that need its pictures.",
            remedyBetweenChains:
                "Only one source can use a camera. Put the stages of both chains into one file, or let one chain serve the pictures with 'rtsp-sink' and the other read them with 'network-source'."
        )
    }
}
