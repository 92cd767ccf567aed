// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Decides what the service manager is told about a run, and when. Pure: looks in, datagrams out.
///
/// - SeeAlso: sd_notify(3), systemd.service(5), docs/design/024-installing.md.
struct SystemdNotifyState {
    /// What is known of the chain at one moment.
    struct Look {
        var status: ChainStatus
        /// Whether a source has given its first frame.
        var isFlowing: Bool
        /// Nanoseconds of the monotonic clock.
        var now: Int64
    }

    /// Longest text of a status, bytes.
    static let longestStatus = 400
    /// The least time between two reports of the status, ns.
    static let statusPause: Int64 = 1_000_000_000
    /// How much more time is asked for while the chain stops, and how often, ns.
    static let moreTime: Int64 = 10_000_000_000
    static let extensionPause: Int64 = 2_000_000_000
    /// Files that are being finished get this long at most, ns. A drain has its own bound, `drainSeconds`.
    static let longestFinish: Int64 = 600_000_000_000

    /// Half of the time for which the manager waits for a sign of life, ns; nil where it does not wait.
    private let watchdogPause: Int64?
    private var isReady = false
    private var isStopping = false
    private var nextSign = Int64.min
    private var nextStatus = Int64.min
    private var nextExtension = Int64.min
    private var finishingSince: Int64?
    private var toldStatus = ""
    /// Why the last reload changed nothing; otherwise empty.
    private var refusal = ""

    /// - Parameter watchdog: How long the manager waits for a sign of life, µs; nil where it does not wait.
    init(watchdog: Int64?) { watchdogPause = watchdog.map { $0 * 500 } }

    /// Datagrams that are due.
    mutating func datagrams(_ look: Look) -> [String] {
        var lines: [String] = []
        switch look.status.state {
        case .stopped, .starting: break
        case .draining, .finishing, .failed: lines += stopping(look)
        case .streaming, .rendering, .paused, .recovering:
            if !isReady, look.status.isAtWork, look.isFlowing || look.status.state == .paused {
                isReady = true
                lines.append("READY=1")
            }
        }
        if let watchdogPause, isReady, look.status.isAtWork, look.now >= nextSign {
            nextSign = look.now + watchdogPause
            lines.append("WATCHDOG=1")
        }
        let status = text(of: look.status)
        if status != toldStatus, look.now >= nextStatus || lines.contains(where: { $0.hasSuffix("=1") }) {
            toldStatus = status
            nextStatus = look.now + Self.statusPause
            lines.append("STATUS=\(status)")
        }
        return lines.isEmpty ? [] : [lines.joined(separator: "\n")]
    }

    private mutating func stopping(_ look: Look) -> [String] {
        var lines: [String] = []
        if !isStopping {
            isStopping = true
            lines.append("STOPPING=1")
        }
        if look.status.state == .finishing, finishingSince == nil { finishingSince = look.now }
        let isLate = finishingSince.map { look.now - $0 > Self.longestFinish } ?? false
        if look.now >= nextExtension, look.status.state != .failed, !isLate {
            nextExtension = look.now + Self.extensionPause
            lines.append("EXTEND_TIMEOUT_USEC=\(Self.moreTime / 1000)")
        }
        return lines
    }

    /// The chain file is about to be read again.
    mutating func reloadBegins(now: Int64) -> [String] {
        guard isReady, !isStopping else { return [] }
        toldStatus = "reading the chain file again"
        return ["RELOADING=1\nMONOTONIC_USEC=\(now / 1000)\nSTATUS=\(toldStatus)"]
    }

    /// - Parameter refusal: Why nothing was changed; empty where it was.
    mutating func reloadEnded(refusal: String) -> [String] {
        self.refusal = refusal
        guard isReady, !isStopping else { return [] }
        nextStatus = .min
        return ["READY=1"]
    }

    /// The run is over. Even a run that was too short to be looked at counts as ready.
    mutating func ended(isSuccess: Bool) -> [String] {
        guard isSuccess || isReady else { return [] }
        var lines = isReady ? [] : ["READY=1"]
        if !isStopping { lines.append("STOPPING=1") }
        (isReady, isStopping) = (true, true)
        return lines.isEmpty ? [] : [lines.joined(separator: "\n")]
    }

    /// `streaming`, `recovering: cam: no such device`, `streaming, not healthy: …`: one line.
    private func text(of status: ChainStatus) -> String {
        var text = status.state.rawValue
        let reasons = status.stages.filter { !$0.reason.isEmpty }.map { "\($0.id): \($0.reason)" }
        if !reasons.isEmpty { text += ": " + reasons.joined(separator: "; ") }
        switch status.state {
        case .stopped, .starting: break
        default: if !status.isHealthy { text += ", not healthy: " + status.problems.joined(separator: " ") }
        }
        if !refusal.isEmpty { text += "\(text.hasSuffix(".") ? "" : ".") The last reload changed nothing: \(refusal)" }
        return Self.line(text)
    }

    /// The text without control characters, which would start another line of the datagram, and with bounded length.
    static func line(_ text: String) -> String {
        var line = ""
        for character in text.unicodeScalars {
            let isControl = character.value < 32 || character.value == 127
            if line.utf8.count >= longestStatus {
                line += "…"
                break
            }
            line.unicodeScalars.append(isControl ? " " : character)
        }
        return line
    }
}
