// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Where a request comes from.
struct Client: Sendable, Hashable {
    /// For limits of connections and of guesses: somebody far away has a whole IPv6 network.
    var network: PeerAddress
    /// The address itself: neighbours on a network are not one client.
    var address: IPAddress

    init(network: PeerAddress, address: IPAddress) { (self.network, self.address) = (network, address) }

    /// An address of the version 4, as a number.
    init(v4: UInt32) { self.init(network: PeerAddress(v4: v4), address: IPAddress(v4: v4)) }

    /// This machine.
    static let local = Client(network: .local, address: .loopback)
}

/// Clients that have logged in lately. A value of bounded size, without clock; times are nanoseconds.
///
/// Wrong passwords of a neighbour make its whole IPv6 network wait. A recorder that has logged in does not wait with it.
struct KnownClients: Sendable {
    static let most = 256
    static let memory: Int64 = 3_600_000_000_000

    private var seen: [IPAddress: Int64] = [:]

    func contains(_ client: Client, now: Int64) -> Bool {
        seen[client.address].map { now - $0 < Self.memory } ?? false
    }

    mutating func note(_ client: Client, now: Int64) {
        if seen[client.address] == nil, seen.count >= Self.most, let oldest = seen.min(by: { $0.value < $1.value }) {
            seen[oldest.key] = nil
        }
        seen[client.address] = now
    }

    /// After a wrong try.
    mutating func forget(_ client: Client) { seen[client.address] = nil }
}
