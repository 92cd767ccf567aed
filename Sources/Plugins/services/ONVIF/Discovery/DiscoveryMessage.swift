// SPDX-License-Identifier: Apache-2.0

/// Messages of WS-Discovery (April 2005), as ONVIF's core specification, 7, uses it. Pure.
enum DiscoveryMessage {
    static let mostBytes = 8 << 10
    private static let actions = "http://schemas.xmlsoap.org/ws/2005/04/discovery/"
    private static let anonymous = "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous"
    private static let everybody = "urn:schemas-xmlsoap-org:ws:2005:04:discovery"
    private static let types = "dn:NetworkVideoTransmitter tds:Device"

    /// What somebody on the network asks.
    enum Question: Sendable, Equatable {
        /// Who is there. Types are local names.
        case probe(messageID: String, types: [String], scopes: [String], isExact: Bool)
        /// Where a device is.
        case resolve(messageID: String, address: String)
    }

    /// Nil for other messages, also those of this device and of others like it.
    static func question(_ bytes: [UInt8]) -> Question? {
        guard bytes.count <= mostBytes, let soap = try? SOAPRequest(bytes), let id = soap.messageID,
            soap.body.space == Namespaces.discovery
        else { return nil }
        switch soap.body.name {
        case "Probe":
            let types = words(soap.body["Types"]?.value ?? "").map { XMLElement.local($0) }
            let rule = soap.body["Scopes"]?.attribute("MatchBy") ?? ""
            // Of LDAP and UUIDs this device has none.
            guard rule.isEmpty || rule.hasSuffix("/rfc3986") || rule.hasSuffix("/strcmp0") else { return nil }
            return .probe(
                messageID: id, types: types, scopes: words(soap.body["Scopes"]?.value ?? ""),
                isExact: rule.hasSuffix("/strcmp0"))
        case "Resolve":
            guard let address = soap.body["EndpointReference"]?["Address"]?.value else { return nil }
            return .resolve(messageID: id, address: address)
        default: return nil
        }
    }

    private static func words(_ text: String) -> [String] {
        text.split(whereSeparator: \.isWhitespace).map(String.init)
    }

    /// Whether a device has all that a probe names.
    static func matches(_ facts: DeviceFacts, types: [String], scopes: [String], isExact: Bool) -> Bool {
        let own = Set(words(Self.types).map { XMLElement.local($0) })
        return types.allSatisfy { own.contains($0) }
            && scopes.allSatisfy { wanted in
                facts.scopes.contains { $0 == wanted || !isExact && isBelow($0, wanted) }
            }
    }

    /// Whether a scope has all segments of another one at its beginning.
    private static func isBelow(_ scope: String, _ wanted: String) -> Bool {
        let wanted = wanted.hasSuffix("/") ? String(wanted.dropLast()) : wanted
        return scope.lowercased() == wanted.lowercased() || scope.lowercased().hasPrefix("\(wanted.lowercased())/")
    }

    /// What a device says of the order of its messages.
    struct Sequence: Sendable {
        /// Higher after each start.
        var instance: UInt32
        var number: UInt32
    }

    private static func envelope(
        _ action: String, to: String, relates: String?, _ id: String, _ sequence: Sequence, _ body: XMLNode
    ) -> [UInt8] {
        XMLNode(
            "s:Envelope", Namespaces.ofDiscovery,
            [
                XMLNode(
                    "s:Header", [],
                    [XMLNode("a:MessageID", "urn:uuid:\(id)")] + (relates.map { [XMLNode("a:RelatesTo", $0)] } ?? [])
                        + [
                            XMLNode("a:To", to), XMLNode("a:Action", actions + action),
                            XMLNode(
                                "d:AppSequence",
                                [
                                    ("InstanceId", "\(sequence.instance)"), ("MessageNumber", "\(sequence.number)"),
                                ]),
                        ]),
                XMLNode("s:Body", [], [body]),
            ]
        ).bytes
    }

    private static func reference(_ facts: DeviceFacts) -> XMLNode {
        XMLNode("a:EndpointReference", [], [XMLNode("a:Address", "urn:uuid:\(facts.identity.uuid)")])
    }

    private static func description(_ facts: DeviceFacts, at address: String) -> [XMLNode] {
        [
            reference(facts), XMLNode("d:Types", types), XMLNode("d:Scopes", facts.scopes.joined(separator: " ")),
            XMLNode("d:XAddrs", address), XMLNode("d:MetadataVersion", 1),
        ]
    }

    static func probeMatches(
        _ facts: DeviceFacts, at address: String, to messageID: String, id: String, _ sequence: Sequence
    ) -> [UInt8] {
        envelope(
            "ProbeMatches", to: anonymous, relates: messageID, id, sequence,
            XMLNode("d:ProbeMatches", [], [XMLNode("d:ProbeMatch", [], description(facts, at: address))]))
    }

    static func resolveMatches(
        _ facts: DeviceFacts, at address: String, to messageID: String, id: String, _ sequence: Sequence
    ) -> [UInt8] {
        envelope(
            "ResolveMatches", to: anonymous, relates: messageID, id, sequence,
            XMLNode("d:ResolveMatches", [], [XMLNode("d:ResolveMatch", [], description(facts, at: address))]))
    }

    static func hello(_ facts: DeviceFacts, at address: String, id: String, _ sequence: Sequence) -> [UInt8] {
        envelope(
            "Hello", to: everybody, relates: nil, id, sequence,
            XMLNode("d:Hello", [], description(facts, at: address)))
    }

    static func bye(_ facts: DeviceFacts, id: String, _ sequence: Sequence) -> [UInt8] {
        envelope("Bye", to: everybody, relates: nil, id, sequence, XMLNode("d:Bye", [], [reference(facts)]))
    }
}
