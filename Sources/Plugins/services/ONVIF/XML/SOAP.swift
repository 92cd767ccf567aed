// SPDX-License-Identifier: Apache-2.0

/// A request's envelope (SOAP 1.2), with what its header says of addresses and of who sends it.
struct SOAPRequest: Sendable, Equatable {
    /// The body's element: its name is the operation.
    var body: XMLElement
    /// Prefixes that the elements around it declare, with their namespaces, the inner ones last.
    var declared: [XMLElement.Attribute]
    var messageID: String?
    var action: String?
    /// WS-Security, UsernameToken profile 1.0.
    var token: UsernameToken?

    /// - Throws: ``SOAPFault`` for what is no envelope.
    init(_ bytes: [UInt8]) throws(SOAPFault) {
        let root: XMLElement
        do { root = try XMLReader.read(bytes) } catch {
            switch error {
            case .malformed: throw .sender("ter:WellFormed", "The request is not well-formed XML in UTF-8.")
            case .forbidden:
                throw .sender(
                    "ter:WellFormed",
                    "A request must not have document types, entities and processing instructions.")
            case .tooLarge: throw .sender("ter:WellFormed", "The request is too large.")
            }
        }
        guard root.name == "Envelope", let content = root["Body"] else {
            throw .sender("ter:WellFormed", "The request is no SOAP envelope with a body.")
        }
        guard let body = content.children.first else {
            throw .sender("ter:WellFormed", "The body of the request is empty.")
        }
        self.body = body
        declared = root.declared + content.declared
        let header = root["Header"]
        messageID = header?["MessageID"].map(\.value).flatMap(Self.short)
        action = header?["Action"].map(\.value)
        token = header?["Security"]?["UsernameToken"].map { UsernameToken($0) }
    }

    private static func short(_ text: String) -> String? { text.utf8.count <= 256 && !text.isEmpty ? text : nil }
}

/// Why a request is refused, as ONVIF's core specification, 5.11.2, has it.
struct SOAPFault: Error, Sendable, Equatable {
    var isSender: Bool
    /// Each more exact than the one before it.
    var codes: [String]
    var reason: String
    /// Whether the client must show who it is, or show it differently.
    var isLogin = false
    /// HTTP's.
    var status: Int

    static func sender(_ codes: String..., reason: String, status: Int = 400) -> SOAPFault {
        SOAPFault(isSender: true, codes: codes, reason: reason, status: status)
    }

    static func sender(_ code: String, _ reason: String) -> SOAPFault { sender(code, reason: reason) }

    static func receiver(_ codes: String..., reason: String) -> SOAPFault {
        SOAPFault(isSender: false, codes: codes, reason: reason, status: 500)
    }

    static func unsupported(_ operation: String) -> SOAPFault {
        let shown = String(operation.prefix(64))
        return .receiver("ter:ActionNotSupported", reason: "This device does not support \(shown).")
    }

    static func noProfile(_ token: String) -> SOAPFault {
        .sender("ter:InvalidArgVal", "ter:NoProfile", reason: "There is no profile '\(token.prefix(64))'.")
    }

    static func noConfiguration(_ token: String) -> SOAPFault {
        .sender("ter:InvalidArgVal", "ter:NoConfig", reason: "There is no configuration '\(token.prefix(64))'.")
    }

    var node: XMLNode {
        var code: XMLNode?
        for name in codes.reversed() {
            code = XMLNode("s:Subcode", [], [XMLNode("s:Value", name)] + (code.map { [$0] } ?? []))
        }
        return XMLNode(
            "s:Fault", [],
            [
                XMLNode(
                    "s:Code", [],
                    [XMLNode("s:Value", isSender ? "s:Sender" : "s:Receiver")] + (code.map { [$0] } ?? [])),
                XMLNode("s:Reason", [], [XMLNode("s:Text", reason, [("xml:lang", "en")])]),
            ])
    }
}

/// An answer's envelope.
enum SOAPAnswer {
    static let contentType = "application/soap+xml; charset=utf-8"

    /// - Parameters:
    ///   - action: WS-Addressing's, where the request had an address of its own.
    ///   - messageID: Of the request.
    static func bytes(_ content: XMLNode, action: String? = nil, to messageID: String? = nil) -> [UInt8] {
        var header: [XMLNode] = []
        if let action { header.append(XMLNode("wsa:Action", action)) }
        if let messageID { header.append(XMLNode("wsa:RelatesTo", messageID)) }
        return XMLNode(
            "s:Envelope", Namespaces.ofAnswers,
            (header.isEmpty ? [] : [XMLNode("s:Header", [], header)]) + [XMLNode("s:Body", [], [content])]
        ).bytes
    }
}
