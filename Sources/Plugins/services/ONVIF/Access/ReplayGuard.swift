// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Which nonces of right logins were used, for as long as their time could still be accepted. A value without clock.
///
/// Its size is bounded. When it is full it forgets the nonces with the earliest times, and from then on refuses these
/// times and every earlier one. So no request is accepted twice, however many come.
///
/// onvif-util of Debian makes its nonces of the clock, and sends the same one, with the same time, with the requests of a
/// moment. So a nonce is accepted again within ``moment`` if it comes from the same address and with another request.
struct ReplayGuard: Sendable {
    static let most = 8192
    /// Nanoseconds.
    static let moment: Int64 = 1_000_000_000
    /// Requests with one nonce.
    static let mostRequests = 8

    private struct Use: Sendable {
        var time: Int64
        var at: Int64
        var peer: PeerAddress
        var requests: [Int]
    }

    private var used: [String: Use] = [:]
    /// This time and earlier ones are refused.
    private(set) var floor = Int64.min
    private let most: Int

    init(most: Int = most) { self.most = max(most, 1) }

    var count: Int { used.count }

    /// - Parameters:
    ///   - nonce: With its time, as the client has written both: it may use the same nonce at different times.
    ///   - time: The same time in seconds.
    ///   - oldest: Times before this one are refused anyway.
    ///   - request: A hash of what is asked.
    ///   - now: Nanoseconds of the monotonic clock.
    /// - Returns: False where it was used before, or may have been.
    mutating func take(
        _ nonce: String, time: Int64, oldest: Int64, from peer: PeerAddress, request: Int, now: Int64
    ) -> Bool {
        guard time > floor else { return false }
        if var use = used[nonce] {
            guard use.peer == peer, now - use.at < Self.moment, !use.requests.contains(request),
                use.requests.count < Self.mostRequests
            else { return false }
            use.requests.append(request)
            used[nonce] = use
            return true
        }
        if used.count >= most {
            used = used.filter { $0.value.time >= oldest }
            // A quarter at once: looking for the earliest takes as long as the list is.
            if used.count >= most {
                let times = used.values.map(\.time).sorted()
                floor = max(floor, times[times.count / 4])
                used = used.filter { $0.value.time > floor }
                guard time > floor else { return false }
            }
        }
        used[nonce] = Use(time: time, at: now, peer: peer, requests: [request])
        return true
    }
}
