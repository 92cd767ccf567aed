// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Tells the service manager (systemd) how the run is: ready, reloading, stopping, alive.
///
/// The environment variables `NOTIFY_SOCKET` and `WATCHDOG_USEC` ask for it. A sign of life is sent only while the
/// chain is healthy, so that the manager restarts a chain that has stalled.
final class SystemdNotify: Sendable {
    /// The longest accepted time between two signs of life, µs: a day.
    private static let longestWatchdog: Int64 = 86_400_000_000
    /// The most datagrams that wait for room. The oldest are dropped first.
    private static let mostWaiting = 16

    private struct State {
        var notices: SystemdNotifyState
        /// Datagrams for which there was no room.
        var waiting: [String] = []
        /// Whether the manager no longer listens.
        var isLost = false
    }

    private let socket: SystemdNotifySocket
    private let name: String
    private let state: Locked<State>

    private init(_ socket: SystemdNotifySocket, name: String, watchdog: Int64?) {
        self.socket = socket
        self.name = name
        state = Locked(State(notices: SystemdNotifyState(watchdog: watchdog)))
    }

    /// [main thread] Must be called before there are other threads, since it removes the variables from the
    /// environment: programs that plugins start are not services.
    ///
    /// - Returns: nil where `NOTIFY_SOCKET` is missing or not usable.
    static func ofEnvironment() -> SystemdNotify? {
        func take(_ name: String) -> String? {
            defer { unsetenv(name) }
            return getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }
        let (name, time, process) = (take("NOTIFY_SOCKET"), take("WATCHDOG_USEC"), take("WATCHDOG_PID"))
        guard let name else { return nil }
        guard let socket = SystemdNotifySocket(name) else {
            RunLog.logger.warning(
                "NOTIFY_SOCKET '\(name)': is not a usable socket. It must be an absolute path or start with '@', and have 2 to 107 bytes. The service manager is not notified. Unset the variable if no service manager runs framehost."
            )
            return nil
        }
        return SystemdNotify(socket, name: name, watchdog: time.flatMap { watchdog($0, of: process) })
    }

    /// How long the manager waits for a sign of life of this process, µs; nil where it does not, or where a variable
    /// cannot be read.
    private static func watchdog(_ time: String, of process: String?) -> Int64? {
        func refuse(_ name: String, _ value: String, _ rule: String) -> Int64? {
            RunLog.logger.warning(
                "\(name) '\(value)': must be \(rule). The service manager gets no watchdog notifications. Correct or unset the variable."
            )
            return nil
        }
        guard let microseconds = Int64(time), (1...longestWatchdog).contains(microseconds) else {
            return refuse("WATCHDOG_USEC", time, "a whole number of microseconds from 1 to \(longestWatchdog)")
        }
        guard let process else { return microseconds }
        guard let number = pid_t(process), number > 0 else {
            return refuse("WATCHDOG_PID", process, "the number of a process")
        }
        return number == getpid() ? microseconds : nil
    }

    /// [control thread] Called at each look at the chain.
    func look(_ chain: Chain) {
        look(at: chain.status, isFlowing: chain.progress.captured > 0)
    }

    /// [control thread] The same for several chains together.
    func look(at status: ChainStatus, isFlowing: Bool) {
        let look = SystemdNotifyState.Look(status: status, isFlowing: isFlowing, now: Self.now)
        tell { $0.datagrams(look) }
    }

    /// [any thread]
    func reloadBegins() { tell { $0.reloadBegins(now: Self.now) } }

    /// [any thread]
    func reloadEnded(_ answer: CommandAnswer) {
        tell { $0.reloadEnded(refusal: answer.isDone ? "" : answer.faults.first?.description ?? answer.text) }
    }

    /// [control thread] The run is over.
    func ended(isSuccess: Bool) { tell { $0.ended(isSuccess: isSuccess) } }

    /// The manager's own clock.
    private static var now: Int64 { MonotonicTime.now() }

    private func tell(_ datagrams: (inout SystemdNotifyState) -> [String]) {
        let lost = state.withLock { state -> Int32? in
            guard !state.isLost else { return nil }
            state.waiting += datagrams(&state.notices)
            state.waiting.removeFirst(max(state.waiting.count - Self.mostWaiting, 0))
            while let text = state.waiting.first {
                switch socket.send(text) {
                case .sent: state.waiting.removeFirst()
                case .full: return nil
                case .lost(let reason):
                    state.isLost = true
                    return reason
                }
            }
            return nil
        }
        guard let lost else { return }
        RunLog.logger.warning(
            "NOTIFY_SOCKET '\(name)': cannot be reached: \(String(cString: strerror(lost))). The service manager is no longer notified."
        )
    }
}
