// SPDX-License-Identifier: Apache-2.0

extension StageInstance {
    /// The output format that the stage gives for these input formats; nil for a sink.
    func agree(on inputs: [MediaFormat]) throws -> MediaFormat? {
        switch stage {
        case let source as any Source: return try source.negotiate()
        case let filter as any MultiFilter:
            let input = try first(of: inputs)
            guard let format = input.video else {
                throw FrameHostError(
                    .invalidConfiguration, what: "a filter takes raw video as its first input, but gets \(input)",
                    remedy:
                        "The first stage in 'from' must give raw video; in a test, the first format in the StageDriver's 'inputs' must be raw video."
                )
            }
            try filter.negotiate(format, further: Array(inputs.dropFirst()))
            return inputs[0]
        case let filter as any Filter:
            let input = try first(of: inputs)
            guard let format = input.video else {
                throw FrameHostError(
                    .invalidConfiguration, what: "a filter takes raw video, but gets \(input)",
                    remedy:
                        "In 'from', name a stage that gives raw video; in a test, pass raw video as the StageDriver's 'input'."
                )
            }
            try filter.negotiate(format)
            return inputs[0]
        case let join as any Join: return try join.negotiate(inputs)
        case let transform as any MultiTransform:
            _ = try first(of: inputs)
            return try transform.negotiate(inputs)
        case let transform as any Transform: return try transform.negotiate(first(of: inputs))
        case let sink as any MultiSink:
            _ = try first(of: inputs)
            try sink.negotiate(inputs)
            return nil
        case let sink as any Sink:
            try sink.negotiate(first(of: inputs))
            return nil
        default:
            throw FrameHostError(
                .broken, what: "the stage must adopt Source, Filter, Transform, Join or Sink, but adopts none of them",
                remedy: "Report this to the plugin's author.")
        }
    }

    private func first(of inputs: [MediaFormat]) throws -> MediaFormat {
        if let first = inputs.first { return first }
        throw FrameHostError(
            .invalidConfiguration, what: "the stage needs an input, but none is given",
            remedy: "Give the StageDriver the format of the input: its argument 'input' or 'inputs'.")
    }
}
