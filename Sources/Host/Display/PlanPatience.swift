// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport

/// Reports what planning waits for when that takes long: a pipe that nobody writes into, a server that does not answer.
enum PlanPatience {
    /// How long one call may take before it is reported, nanoseconds.
    static let limit: Int64 = 2_000_000_000

    /// Does `body`, and reports on standard error which stage it waits for.
    static func during<Result>(_ body: () throws -> Result) rethrows -> Result {
        let isOver = WaitableFlag()
        // Where no thread can be started, nothing is reported.
        _ = Background.start {
            var told: String?
            while !isOver.wait(milliseconds: 100) {
                guard let current = CrashNote.current, current.nanoseconds >= limit,
                    "\(current.subject) \(current.doing)" != told
                else {
                    continue
                }
                told = "\(current.subject) \(current.doing)"
                RunLog.logger.notice(
                    "\(current.subject) is still \(current.doing). It may be waiting for a file, pipe, device or server. Ctrl-C ends this."
                )
            }
        }
        defer { isOver.raise() }
        return try body()
    }
}
