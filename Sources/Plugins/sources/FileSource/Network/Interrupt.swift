// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import FrameSupport
import Synchronization

/// Whether libavformat may go on, which it asks at least every 100 ms while it waits. [any thread]
final class Interrupt: Sendable {
    private let isEnded = Atomic<Bool>(false)
    /// `CLOCK_MONOTONIC`, nanoseconds.
    private let deadline = Atomic<Int64>(.max)

    /// Ends the call that is under way, and every later one except closing.
    func end() { isEnded.store(true, ordering: .releasing) }
    var hasEnded: Bool { isEnded.load(ordering: .acquiring) }
    func allow(seconds: Double) {
        deadline.store(MonotonicTime.now() + Int64(seconds * 1e9), ordering: .releasing)
    }
    let isClosing = Atomic<Bool>(false)

    var mustStop: Bool {
        (hasEnded && !isClosing.load(ordering: .acquiring)) || MonotonicTime.now() > deadline.load(ordering: .acquiring)
            || isLedAway
    }

    // MARK: Where a login goes

    /// The connection that is watched, the address that it has the login for, and its URL when that was looked at last.
    /// [reader's thread], also where libavformat asks.
    nonisolated(unsafe) private var watched:
        (
            context: UnsafeMutablePointer<AVFormatContext>, home: NetworkAddress, url: UnsafeMutablePointer<CChar>?
        )?
    /// The address of another server to which the watched connection was led; nil where it was not.
    nonisolated(unsafe) private(set) var otherServer: String?

    /// Ends the calls for a connection that a server leads to another one (RFC 2326, 11.3): libavformat's RTSP client would
    /// send the login there.
    func watch(_ context: UnsafeMutablePointer<AVFormatContext>, _ home: NetworkAddress) {
        (watched, otherServer) = ((context, home, nil), nil)
    }

    /// [reader's thread] Whether the newest connection failed because its login was refused.
    nonisolated(unsafe) private(set) var isLoginRefused = false
    func noteLogin(isRefused: Bool) { isLoginRefused = isRefused }

    /// [reader's thread] No connection is watched from now on.
    func unwatch() { watched = nil }

    private var isLedAway: Bool {
        guard let watched else { return false }
        guard otherServer == nil, let url = watched.context.pointee.url, url != watched.url else {
            return otherServer != nil
        }
        self.watched?.url = url
        let text = String(cString: url)
        if !watched.home.isServer(of: text) { otherServer = text }
        return otherServer != nil
    }

    /// Asks this, which must outlive what gets it.
    var libav: AVIOInterruptCB {
        AVIOInterruptCB(callback: Self.callback, opaque: Unmanaged.passUnretained(self).toOpaque())
    }

    /// Asks the ``Interrupt`` to which `opaque` points.
    private static let callback: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { opaque in
        guard let opaque else { return 0 }
        return Unmanaged<Interrupt>.fromOpaque(opaque).takeUnretainedValue().mustStop ? 1 : 0
    }
}
