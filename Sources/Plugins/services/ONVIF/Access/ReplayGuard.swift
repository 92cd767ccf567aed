// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Which nonces of right logins were used, for as long as their time could still be accepted. A value without clock.
///
/// Its size is bounded, for each client and in all. A client that has used up its part is told to log in by HTTP digest,
/// and keeps no other client out. When all parts together are too much, the guard forgets the nonces with the earliest
/// times, and from then on refuses these times and every earlier one. So no request is accepted twice, however many come.
///
/// onvif-util of Debian makes its nonces of the clock, and sends the same one, with the same time, with the requests of a
/// moment. So a nonce is accepted again within ``moment`` if it comes from the same address and with another request.
struct ReplayGuard: Sendable {
    static let most = 8192
    /// Nonces of one client: eight a second, for as long as times are good.
    static let mostOfClient = 1024
    /// Nanoseconds.
    static let moment: Int64 = 1_000_000_000
    /// Requests with one nonce.
    static let mostRequests = 8

    enum Outcome: Sendable, Equatable {
        case new
        /// It was used before, or may have been.
        case used
        /// The client has used too many.
        case crowded
    }

    private struct Use: Sendable {
        var time: Int64
        var at: Int64
        var client: IPAddress
        var requests: [Int]
    }

    private var used: [String: Use] = [:]
    private var counts: [IPAddress: Int] = [:]
    /// This time and earlier ones are refused.
    private(set) var floor = Int64.min
    private let most: Int
    private let mostOfClient: Int

    init(most: Int = most, ofClient: Int = mostOfClient) {
        (self.most, mostOfClient) = (max(most, 1), max(ofClient, 1))
    }

    var count: Int { used.count }

    /// - Parameters:
    ///   - nonce: With its time, as the client has written both: it may use the same nonce at different times.
    ///   - time: The same time in seconds.
    ///   - oldest: Times before this one are refused anyway.
    ///   - request: A hash of what is asked.
    ///   - now: Nanoseconds of the monotonic clock.
    mutating func take(
        _ nonce: String, time: Int64, oldest: Int64, from client: Client, request: Int, now: Int64
    ) -> Outcome {
        guard time > floor else { return .used }
        if var use = used[nonce] {
            guard use.client == client.address, now - use.at < Self.moment, !use.requests.contains(request),
                use.requests.count < Self.mostRequests
            else { return .used }
            use.requests.append(request)
            used[nonce] = use
            return .new
        }
        if counts[client.address] ?? 0 >= mostOfClient {
            keep { $0.time >= oldest }
            guard counts[client.address] ?? 0 < mostOfClient else { return .crowded }
        }
        if used.count >= most {
            keep { $0.time >= oldest }
            // A quarter at once: looking for the earliest takes as long as the list is.
            if used.count >= most {
                let times = used.values.map(\.time).sorted()
                let floor = max(floor, times[times.count / 4])
                self.floor = floor
                keep { $0.time > floor }
                guard time > floor else { return .used }
            }
        }
        used[nonce] = Use(time: time, at: now, client: client.address, requests: [request])
        counts[client.address, default: 0] += 1
        return .new
    }

    private mutating func keep(_ isKept: (Use) -> Bool) {
        used = used.filter { isKept($0.value) }
        counts = [:]
        for use in used.values { counts[use.client, default: 0] += 1 }
    }
}
