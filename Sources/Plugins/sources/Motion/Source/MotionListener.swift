// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Receives motion as datagrams of JSON. Used by one thread at a time.
///
/// It takes one sender at a time, since two have different clocks. Another one is taken when the first has been
/// silent for a second.
final class MotionListener: LiveMotion {
    private let place: SocketPlace
    private let units: MotionUnits
    private let context: StageContext
    private let reports: MotionReports

    private var socket: Int32 = -1
    private var bytes = [UInt8](repeating: 0, count: JSONMotion.mostBytes)
    private var clock = ClockOffset()
    /// Its `patience` is how long a sample waits for the other sensors of a phone, nanoseconds.
    private var merge = SensorMerge(patience: 40_000_000)
    private var sender: SenderAddress?

    /// The most datagrams of one call, so that a flood does not keep the stage from ending.
    private static let mostDatagrams = 64

    /// [control thread] Opens nothing.
    init(_ place: SocketPlace, units: MotionUnits, context: StageContext, reports: MotionReports) {
        (self.place, self.units, self.context, self.reports) = (place, units, context, reports)
    }

    deinit { stop() }

    func negotiate() -> MotionFormat { MotionFormat(contents: [.rotationRate, .acceleration, .attitude]) }

    // MARK: Socket

    func start() throws {
        let family = place.isIPv6 ? AF_INET6 : AF_INET
        socket = Glibc.socket(
            family, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw Self.fault(place, errno) }
        if let code = place.bind(socket) {
            stop()
            throw Self.fault(place, code)
        }
        reports.begin()
    }

    func stop() {
        if socket >= 0 { close(socket) }
        socket = -1
    }

    private static func fault(_ place: SocketPlace, _ code: Int32) -> FrameHostError {
        let remedy =
            switch code {
            case EADDRINUSE:
                "Use another port, or end the program that uses this one. If the stage that you are changing uses this port itself, restart the chain to apply the change."
            case EADDRNOTAVAIL: "Use an address of this machine: `ip address` lists them."
            case EACCES: "Use a port of 1024 or more."
            case EAFNOSUPPORT where place.isIPv6: "Use an IPv4 address: this machine has no IPv6."
            default: ""
            }
        return FrameHostError(
            .unavailable, place: "listen", what: "nothing can be received at \(place.text): \(ErrorText.of(code))",
            remedy: remedy)
    }

    // MARK: Datagrams

    func take(into samples: inout [MotionSample]) throws -> Bool {
        var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        let ready = context.waiting { SystemCall.retrying { poll(&entry, 1, LiveWait.milliseconds) } }
        guard ready > 0 else {
            merge.end(into: &samples)
            noticeSilence()
            return false
        }
        var isGap = false
        for _ in 0..<Self.mostDatagrams {
            guard let (count, from) = receive() else { break }
            isGap = take(count, from, &samples) || isGap
        }
        noticeSilence()
        return isGap
    }

    /// Receives the next datagram into ``bytes``: its size and its sender; nil for none.
    private func receive() -> (Int, SenderAddress)? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let count = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                recvfrom(socket, &bytes, bytes.count, 0, pointer, &length)
            }
        }
        return count < 0 ? nil : (min(count, bytes.count), SenderAddress(address, length))
    }

    /// Appends the samples of a datagram; true where another sender has taken over, or the sender's clock has jumped.
    private func take(_ count: Int, _ from: SenderAddress, _ samples: inout [MotionSample]) -> Bool {
        let now = context.clock.now()
        if let sender, !sender.isSameHost(as: from), now - reports.lastMotionAt < LiveWait.patience {
            reports.refuse(
                from: from.text, "comes while \(sender.host) sends, and there can be only one sender at a time",
                remedy: "Stop one of the two senders.")
            return false
        }
        let readings: [JSONMotion.Reading]
        do throws(MotionFault) {
            readings = try JSONMotion.readings(in: bytes[..<count], units: units)
        } catch {
            reports.refuse(from: from.text, error.what)
            return false
        }
        guard !readings.isEmpty else { return false }
        var isGap = sender.map { !$0.isSameHost(as: from) } ?? false
        if isGap { begin(&samples) }
        sender = from
        if let newest = readings.compactMap(\.stamp).max(), let jump = clock.take(stamp: newest, arrival: now) {
            reports.clockJumped(by: jump)
            merge.end(into: &samples)
            merge.restart()
            isGap = true
        }
        for reading in readings {
            var sample = reading.sample
            sample.time = MediaTime(nanoseconds: reading.stamp.map { $0 &+ clock.offset } ?? now)
            merge.add(sample, into: &samples)
        }
        _ = reports.came(at: now)
        return isGap
    }

    /// Starts anew for another sender, which has another clock.
    private func begin(_ samples: inout [MotionSample]) {
        merge.end(into: &samples)
        merge.restart()
        clock = ClockOffset()
    }

    // MARK: Silence

    private func noticeSilence() {
        reports.silent(
            "no samples have come at \(place.text) for a second",
            "The stage keeps waiting. Check that the phone or program sends to this machine and port.")
    }
}
