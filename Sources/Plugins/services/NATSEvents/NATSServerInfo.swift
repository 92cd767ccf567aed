// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Publishing

/// What a NATS server says of itself. Pure.
struct NATSServerInfo: Equatable {
    /// The largest message that it takes.
    var maxPayload = 1 << 20
    var hasHeaders = false
    var needsTLS = false
    var offersTLS = false
    /// What a user's key is to sign; empty where nothing is.
    var nonce = ""
    /// `HOST:PORT` of other servers of the cluster.
    var cluster: [String] = []
    /// Servers of a cluster that are known besides those that the chain file names.
    static let mostServers = 32

    /// - Throws: ``ServerFault`` where it is no JSON object.
    init(_ json: [UInt8]) throws(ServerFault) {
        var limits = JSONReader.Limits()
        (limits.bytes, limits.depth, limits.nodes) = (NATSParser.mostLineBytes, 16, 10_000)
        guard let node = try? JSONReader.read(json, file: "INFO", limits: limits), node.asObject != nil else {
            throw ServerFault("the server's first line holds no JSON that can be read")
        }
        maxPayload = min(max(node["max_payload"]?.asInt ?? 1 << 20, 0), NATSParser.mostAnnouncedBytes)
        hasHeaders = node["headers"]?.asBool ?? false
        needsTLS = node["tls_required"]?.asBool ?? false
        offersTLS = node["tls_available"]?.asBool ?? false
        nonce = node["nonce"]?.asString ?? ""
        cluster = (node["connect_urls"]?.asArray ?? []).prefix(Self.mostServers).compactMap(\.asString)
        guard nonce.utf8.count <= 1024 else { throw ServerFault("the server wants more than 1 KiB signed") }
    }
}

/// The servers that are tried, in turn. Pure.
struct NATSServers {
    struct Entry: Equatable {
        var address: ServerAddress
        /// The name that the certificate of a server must have whose address alone the cluster has told.
        var certificateName: String
    }

    private let named: [Entry]
    private var told: [Entry] = []
    private var next = 0

    /// - Parameter addresses: Not empty. They are tried in this order, and then those that a server has told.
    init(_ addresses: [ServerAddress]) {
        named = addresses.map { Entry(address: $0, certificateName: $0.host) }
    }

    var count: Int { named.count + told.count }

    /// The server that is to be tried next.
    mutating func take() -> Entry {
        let all = named + told
        defer { next = (next + 1) % all.count }
        return all[next % all.count]
    }

    /// Notes what a server has said of its cluster.
    mutating func learn(_ cluster: [String], from entry: Entry) {
        guard !cluster.isEmpty else { return }
        var all: [Entry] = []
        for text in cluster.prefix(NATSServerInfo.mostServers) {
            let scheme = entry.address.scheme
            guard text.utf8.count <= 300,
                let address = try? ServerAddress("\(scheme)://\(text)", option: "servers", schemes: [(scheme, 4222)]),
                !named.contains(where: { $0.address == address }), !all.contains(where: { $0.address == address })
            else { continue }
            let isBare = ServerSocket.isAddress(address.host)
            all.append(Entry(address: address, certificateName: isBare ? entry.certificateName : address.host))
        }
        told = all
    }
}
