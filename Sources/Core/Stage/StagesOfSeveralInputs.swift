// SPDX-License-Identifier: Apache-2.0

/// A transform that takes the items of one or several inputs, such as sounds to be mixed: `"from": ["mic", "music"]`.
///
/// Its ``StageInfo/furtherInputs`` says what the inputs beside the first may carry; none of them is pictures. The
/// runner hands it the items of all inputs in the order of their time, as far as that is known. It waits for an input
/// that has none yet; in a live chain, for at most ``longestWait``. docs/design/033-kinds-of-sample.md.
///
/// ```swift
/// func process(_ input: consuming Sample, from index: Int, isInTurn: Bool, _ output: Output) throws {
///     guard case .audioBlock(let block) = consume input else { return output.drop(.byStage) }
///     if isInTurn { try give(before: block.pts, output) }   // as .made
///     sum.add(block, from: index)
///     output.absorb()
/// }
/// ```
public protocol MultiTransform: Transform {
    /// [control thread] Returns the output format for the formats of all inputs, in the order of `from`; one or several.
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat

    /// [stage thread] Takes one item of the input at `index` in `from`, and emits what is ready.
    ///
    /// - Parameters:
    ///   - input: The item.
    ///   - index: The input that it came on.
    ///   - isInTurn: Whether no input that was waited for will give an item of an earlier time. False where the item is
    ///     taken early, so that its producer can go on.
    ///   - output: Where the stage emits.
    func process(_ input: consuming Sample, from index: Int, isInTurn: Bool, _ output: Output) throws

    /// How long a live chain waits for an input that has no items. The runner reads it at each item.
    var longestWait: MediaTime { get }

    /// In a live chain, when ``idle(_:)`` is to be called if no item comes before: a time of the chain clock. The runner
    /// reads it whenever it waits. The default is nil: never.
    var idleTime: MediaTime? { get }

    /// [stage thread] No item has come up to ``idleTime``: the stage may emit what it makes itself. The default does
    /// nothing.
    func idle(_ output: Output) throws
}

extension MultiTransform {
    public func negotiate(_ input: MediaFormat) throws -> MediaFormat { try negotiate([input]) }
    public func process(_ input: consuming Sample, _ output: Output) throws {
        try process(input, from: 0, isInTurn: true, output)
    }
    public var idleTime: MediaTime? { nil }
    public func idle(_ output: Output) throws {}
}

/// A sink that takes the items of one or several inputs, such as pictures and their sound: `"from": ["h264", "aac"]`.
///
/// Its ``StageInfo/furtherInputs`` says what the inputs beside the first may carry. The runner hands it the items
/// of all inputs in the order of their time (decode time of access units), as far as that is known. It waits for an
/// input that has none yet; in a live chain, for at most a second. An item that comes later than that is handed on
/// all the same, with its earlier time. docs/design/033-kinds-of-sample.md.
///
/// ```swift
/// func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict {
///     guard case .accessUnit(let unit) = consume input else { return .dropped(.byStage) }
///     try tracks[index].write(unit)
///     return .delivered
/// }
/// ```
public protocol MultiSink: Sink {
    /// [control thread] Takes note of the formats of all inputs, in the order of `from`; one or several.
    func negotiate(_ inputs: [MediaFormat]) throws

    /// [stage thread] Takes one item of the input at `index` in `from`.
    func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict
}

extension MultiSink {
    public func negotiate(_ input: MediaFormat) throws { try negotiate([input]) }
    public func consume(_ input: consuming Sample) throws -> SinkVerdict { try consume(input, from: 0) }

    // The default of Sink would call the one above, which calls it.
    @available(*, unavailable, message: "a MultiSink implements consume(_:from:)")
    public func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict { .idle }
}

/// A filter that takes pictures and what goes with them, such as motion: `"from": ["cam", "motion"]`.
///
/// Its ``StageInfo/furtherInputs`` says what the inputs beside the first may carry. The runner hands it all items in the
/// order of their time, and each picture only after the items of the further inputs that are up to ``lookAhead`` later.
/// It waits for these; in a live chain for at most ``longestWait``, and not while the queue of the pictures is full.
/// docs/design/033-kinds-of-sample.md.
///
/// ```swift
/// func receive(_ item: consuming Sample, from index: Int) throws {
///     guard case .motionBlock(let block) = consume item else { return }
///     for place in 0..<block.sampleCount { ring.append(block[place]) }
/// }
/// ```
public protocol MultiFilter: Filter {
    /// [control thread] Takes note of the formats: of the pictures, and of the inputs after the first in the order of
    /// `from`, of which there may be none.
    func negotiate(_ format: VideoFormat, further: [MediaFormat]) throws

    /// How much later than a picture items of further inputs may be that the filter needs before it gets the
    /// picture. The runner reads it at each item.
    var lookAhead: MediaTime { get }

    /// How long a live chain waits for an input that has no items. The runner reads it at each item.
    var longestWait: MediaTime { get }

    /// [stage thread] Takes one item of the input at `index` in `from`, which is 1 or more.
    func receive(_ item: consuming Sample, from index: Int) throws
}

extension MultiFilter {
    public func negotiate(_ format: VideoFormat) throws { try negotiate(format, further: []) }
}
