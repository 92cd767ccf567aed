// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// Says how many frames each image has marked, and since which frame.
final class SwapCount: Filter {
    static let info = StageInfo(
        id: "swap-count", summary: "Counts frames by the image that marked them.", input: .anyVideo,
        output: .sameAsInput, metadata: [Marker.self])

    /// Of one instance.
    struct Seen {
        var frames = 0
        var unmarked = 0
        var gaps = 0
        var next: UInt64?
        var marked: Int32 = 0
        var since: UInt64 = 0
        var gain: Int32 = 0
    }

    var options = NoOptions()
    private let context: StageContext
    private let box: Box
    private var slot: MetadataSlot<Marker>?

    final class Box: Sendable { let seen = Mutex(Seen()) }

    init(options: NoOptions, context: StageContext) {
        self.context = context
        box = Box()
        context.showFigures { [box] in
            let seen = box.seen.withLock { $0 }
            return .object([
                ("version", .number(version)), ("frames", .number(seen.frames)), ("unmarked", .number(seen.unmarked)),
                ("gaps", .number(seen.gaps)), ("marked", .number(seen.marked)), ("since", .number(seen.since)),
                ("gain", .number(seen.gain)),
            ])
        }
    }

    func start() { slot = context.slot(for: Marker.self) }

    func process(_ frame: inout Frame) -> Verdict {
        let marker = slot.flatMap { frame[$0] }
        let number = frame.sequenceNumber
        box.seen.withLock { seen in
            seen.frames += 1
            if let next = seen.next, next != number { seen.gaps += 1 }
            seen.next = number + 1
            guard let marker else {
                seen.unmarked += 1
                return
            }
            if seen.marked != marker.version { (seen.marked, seen.since) = (marker.version, number) }
            seen.gain = marker.gain
        }
        return .forward
    }
}
