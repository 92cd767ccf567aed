// SPDX-License-Identifier: Apache-2.0

/// A stage by what the runner calls.
enum StageBody {
    case source(any Source)
    case filter(any Filter)
    /// A filter that keeps frames back. It is the last stage of its inline run, as a transform is.
    case delaying(any DelayingFilter)
    case transform(any Transform)
    case join(any Join)
    case sink(any Sink)

    /// - Parameters:
    ///   - kind: Of the stage's type.
    ///   - isDelaying: Whether the stage asks for a delay.
    init(_ stage: any Stage, _ kind: StageKind, isDelaying: Bool) {
        self =
            switch kind {
            case .source: .source(stage as! any Source)
            case .filter:
                if isDelaying, let filter = stage as? any DelayingFilter {
                    .delaying(filter)
                } else {
                    .filter(stage as! any Filter)
                }
            case .transform: .transform(stage as! any Transform)
            case .join: .join(stage as! any Join)
            case .sink: .sink(stage as! any Sink)
            }
    }

    /// [stage thread] Items that the stage has taken and not answered, by its own count.
    var held: Int {
        switch self {
        case .transform(let transform): transform.held
        case .delaying(let filter): filter.held
        case .source, .filter, .join, .sink: 0
        }
    }

    /// [stage thread] No item follows.
    func drain(_ output: Output?) throws {
        switch self {
        case .transform(let transform): if let output { try transform.drain(output) }
        case .delaying(let filter): if let output { try filter.drain(output) }
        case .join(let join): if let output { try join.drain(output) }
        case .sink(let sink): try sink.drain()
        case .source, .filter: break
        }
    }
}
