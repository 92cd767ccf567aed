// SPDX-License-Identifier: Apache-2.0

import Conversion
import FrameCore
import Shared

/// What both stages require of their inputs, and the format that they give.
struct InputFormats {
    let inputs: [VideoFormat]
    let output: VideoFormat

    /// - Throws: ``FrameHostError`` for a single input, for pictures that are not upright, and where no rate is known.
    init(
        _ formats: [MediaFormat], size: PictureSize?, rate: FrameRate?, _ context: StageContext, stage: String
    ) throws {
        inputs = formats.compactMap(\.video)
        guard inputs.count == formats.count, inputs.count > 1 else {
            throw FrameHostError(
                .invalidConfiguration, place: "from", what: "\(stage) needs two or more inputs",
                remedy: "Name them: \"from\": [\"a\", \"b\"].")
        }
        if let turned = inputs.firstIndex(where: { $0.orientation != .up }) {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "the pictures of '\(context.inputIDs[turned])' must be upright, but are stored \(inputs[turned].orientation)",
                remedy:
                    "Put a 'crop-orient' between '\(context.inputIDs[turned])' and this stage: it turns pictures upright."
            )
        }
        if let thin = inputs.firstIndex(where: { $0.width < 2 || $0.height < 2 }) {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "the pictures of '\(context.inputIDs[thin])' are \(inputs[thin].width)x\(inputs[thin].height), but must be 2x2 or larger",
                remedy: "Name another input.")
        }
        var output = inputs[0]
        if let size { output = output.resized(to: size) }
        guard output.width % 2 == 0, output.height % 2 == 0 else {
            throw FrameHostError(
                .invalidConfiguration, place: "size",
                what: "the width and height must be even, but the size is \(output.width)x\(output.height)",
                remedy: "Set \"size\": \"\(max(output.width & ~1, 2))x\(max(output.height & ~1, 2))\".")
        }
        output.sampleAspectRatio = size == nil ? inputs[0].sampleAspectRatio : Rational(0)
        output.timeBase = .nanoseconds
        if let rate { output.frameRate = rate.rational }
        guard !output.frameRate.isZero else {
            throw FrameHostError(
                .invalidConfiguration, place: "rate",
                what: "'\(context.inputIDs[0])' does not declare a frame rate for this stage to use",
                remedy: "Set the pictures per second: \"rate\": 30.")
        }
        self.output = output
        if context.audio != nil {
            // No warning: the stage cannot see whether another one takes it from the source, which says what it drops.
            context.note(
                "this stage gives no sound. A file's sound is kept where the chain links it (\"from\": \"clip.audio\") to an 'audio-encoder', and the encoder to the sink"
            )
        }
        for (index, input) in inputs.enumerated() where YUVToYUV(from: input, to: inputs[0]) != nil {
            context.note(
                "the pictures of '\(context.inputIDs[index])' differ from those of '\(context.inputIDs[0])' in colour matrix or range, and are converted to them"
            )
        }
    }

    /// From one picture to the next.
    var tick: MediaTime {
        MediaTime(
            nanoseconds: Int64(output.frameRate.denominator) * 1_000_000_000 / max(Int64(output.frameRate.numerator), 1)
        )
    }

    var whole: Rectangle { Rectangle(width: output.width, height: output.height) }
}
