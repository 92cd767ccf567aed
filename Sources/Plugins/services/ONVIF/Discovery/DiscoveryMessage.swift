// SPDX-License-Identifier: Apache-2.0

/// Messages of WS-Discovery (April 2005), as ONVIF's core specification, 7, uses it. Pure.
enum DiscoveryMessage {
    static let mostBytes = 8 << 10
    private static let actions = "http://schemas.xmlsoap.org/ws/2005/04/discovery/"
    private static let anonymous = "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous"
    private static let everybody = "urn:schemas-xmlsoap-org:ws:2005:04:discovery"
    private static let types = "dn:NetworkVideoTransmitter tds:Device"

    /// The types of ``types``.
    private static let ownTypes: Set<TypeName> = [
        TypeName(space: Namespaces.network, name: "NetworkVideoTransmitter"),
        TypeName(space: Namespaces.device, name: "Device"),
    ]

    /// A type of devices: a qualified name.
    struct TypeName: Sendable, Hashable {
        /// Nil for a name without a prefix, and for one whose prefix the message does not declare.
        var space: String?
        var name: String

        /// - Parameter declared: Prefixes with their namespaces, the inner ones last.
        init(_ text: String, declared: [XMLElement.Attribute]) {
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            name = String(parts.last ?? "")
            if parts.count == 2 { space = declared.last { $0.name == parts[0] }?.value }
        }

        init(space: String?, name: String) { (self.space, self.name) = (space, name) }

        /// Some clients that people copy leave out the namespace of ONVIF's first type. No other standard has this
        /// name. `Device` is a type of Windows, too, so it needs its namespace.
        var isOfThisDevice: Bool { ownTypes.contains(self) || space == nil && name == "NetworkVideoTransmitter" }
    }

    /// What somebody on the network asks.
    enum Question: Sendable, Equatable {
        /// Who is there.
        case probe(messageID: String, types: [TypeName], scopes: [String], isExact: Bool)
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
            let asked = soap.body["Types"]
            let declared = soap.declared + soap.body.declared + (asked?.declared ?? [])
            let types = words(asked?.value ?? "").map { TypeName($0, declared: declared) }
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
    static func matches(_ facts: DeviceFacts, types: [TypeName], scopes: [String], isExact: Bool) -> Bool {
        types.allSatisfy(\.isOfThisDevice)
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
