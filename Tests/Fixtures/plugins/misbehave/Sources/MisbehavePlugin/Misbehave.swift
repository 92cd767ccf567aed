// SPDX-License-Identifier: Apache-2.0

import CMarker
import FrameCore
import Glibc

/// What goes wrong.
enum Fault: String, OptionChoice {
    case none
    /// Blocks in C `pause()` and never comes back.
    case pause
    /// Throws.
    case `throw`
    /// Keeps a lease of every frame, though it declares none.
    case keep
}

/// A filter that goes wrong at a given frame.
final class Misbehave: Filter {
    static let info = StageInfo(
        id: "misbehave", summary: "Goes wrong on purpose.", input: .video(.i420, .nv12), output: .sameAsInput)

    struct Options: StageOptions {
        @Option(help: "What goes wrong.") var fault = Fault.none
        @Option(help: "From which frame on.", range: 0...1_000_000) var at = 0
        @Option(help: "Blocks in start() instead.") var inStart = false
        @Option(help: "A number that does nothing.", range: 0...100, unit: "%", live: true) var level = 50
    }

    var options: Options
    private var kept = Keeper()

    init(options: Options, context: StageContext) {
        self.options = options
        marker_keep()
    }

    func start() {
        guard options.inStart else { return }
        while true { pause() }
    }

    func process(_ frame: inout Frame) throws -> Verdict {
        guard frame.sequenceNumber >= UInt64(options.at) else { return .forward }
        switch options.fault {
        case .none: break
        case .pause: while true { pause() }
        case .throw: throw FrameHostError(.invalidMedia, what: "the picture is not to be borne", remedy: "Look away.")
        case .keep: kept.keep(frame.share())
        }
        return .forward
    }

    func stop() { kept = Keeper() }
}

/// Frames can only be moved, so they are kept in a list of their own making.
private final class Keeper {
    private var frame: Frame?
    private var next: Keeper?

    func keep(_ frame: consuming Frame) {
        let tail = Keeper()
        tail.next = next
        tail.frame = self.frame.take()
        self.frame = consume frame
        next = tail
    }
}
