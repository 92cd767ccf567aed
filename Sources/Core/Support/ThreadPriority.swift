// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Gives a thread that must not be late precedence over others. It sets the mildest real-time policy at its lowest
/// priority, or a nice value less than 0 where that is not permitted.
///
/// Only the thread itself has the policy; what it starts runs as usual (SCHED_RESET_ON_FORK).
/// - SeeAlso: sched(7), setpriority(2).
struct ThreadPriority {
    enum Outcome: Equatable {
        /// SCHED_RR at priority 1: before every thread that is not real-time.
        case realTime
        /// A nice value ``step`` below the one that it had.
        case nice(from: Int32)
        /// As every other thread, and the errno that says why.
        case usual(Int32)
    }

    /// The kernel's calls for the calling thread. Those that set something return 0 or an errno. Tests use
    /// functions of their own.
    struct Calls: Sendable {
        var nice: @Sendable () -> Int32 = { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }
        var setPolicy: @Sendable (_ policy: Int32, _ priority: Int32) -> Int32 = { policy, priority in
            var parameters = sched_param()
            parameters.sched_priority = priority
            return sched_setscheduler(0, policy, &parameters) == 0 ? 0 : errno
        }
        var setNice: @Sendable (_ value: Int32) -> Int32 = { value in
            setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, value) == 0 ? 0 : errno
        }
    }

    /// What is taken off the nice value.
    static let step: Int32 = 10
    private static let lowest: Int32 = 1
    /// `SCHED_RESET_ON_FORK` of sched.h, which Swift does not import.
    private static let resetOnFork: Int32 = 0x4000_0000

    var calls = Calls()
    private(set) var outcome: Outcome?

    /// [the thread itself] Raises the priority. Later calls do nothing until ``restore()``.
    mutating func raise() {
        guard outcome == nil else { return }
        let refused = calls.setPolicy(SCHED_RR | Self.resetOnFork, Self.lowest)
        guard refused != 0 else { return outcome = .realTime }
        let before = calls.nice()
        outcome = calls.setNice(max(before - Self.step, -20)) == 0 ? .nice(from: before) : .usual(refused)
    }

    /// [the thread itself] Gives the thread the usual priority again.
    mutating func restore() {
        switch outcome {
        // Removing the flag would need a privilege that setting it does not need.
        case .realTime: _ = calls.setPolicy(SCHED_OTHER | Self.resetOnFork, 0)
        case .nice(let before): _ = calls.setNice(before)
        case .usual, nil: break
        }
        outcome = nil
    }
}

extension ThreadPriority.Outcome {
    /// The sentence about a thread whose priority could not be raised; nil for any other outcome.
    var notice: String? {
        guard case .usual(let reason) = self else { return nil }
        return
            "The capture thread has normal priority (\(String(cString: strerror(reason)))): on a busy machine what it captures may be late or lost. Allow this user real-time priority 1: add the line '@video - rtprio 1' (for the group 'video') to /etc/security/limits.conf and log in again; in a systemd unit set LimitRTPRIO=1."
    }
}
