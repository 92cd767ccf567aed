// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// Reports what planning waits for when that takes long: a pipe that nobody writes into, a server that does not answer.
enum PlanPatience {
    /// How long one call may take before it is reported, nanoseconds.
    static let limit: Int64 = 2_000_000_000

    /// Does `body`, and reports on standard error which stage it waits for.
    static func during<Result>(_ body: () throws -> Result) rethrows -> Result {
        let isOver = Shared()
        // Where no thread can be started, nothing is reported.
        _ = Background.start {
            var told: String?
            while !isOver.value.load(ordering: .relaxed) {
                ChainWatch.sleep(0.1)
                guard let current = CrashNote.current, current.nanoseconds >= limit,
                    "\(current.subject) \(current.doing)" != told
                else {
                    continue
                }
                guard !isOver.value.load(ordering: .relaxed) else { return }
                told = "\(current.subject) \(current.doing)"
                RunLog.logger.notice(
                    "\(current.subject) is still \(current.doing). It may be waiting for a file, pipe, device or server. Ctrl-C ends this."
                )
            }
        }
        defer { isOver.value.store(true, ordering: .relaxed) }
        return try body()
    }

    private final class Shared: Sendable { let value = Atomic<Bool>(false) }
}
