// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The event service: PullPoint subscriptions (ONVIF's core specification, 9). Notifications by calls of the device are
/// refused: it would connect to whatever address a client names.
struct EventService: Sendable {
    static let capabilities = XMLNode(
        "tev:Capabilities",
        [
            ("WSSubscriptionPolicySupport", "false"), ("WSPausableSubscriptionManagerInterfaceSupport", "false"),
            ("MaxNotificationProducers", "0"), ("MaxPullPoints", "\(EventDesk.mostSubscriptions)"),
            ("PersistentNotificationStorage", "false"),
        ])

    let desk: EventDesk

    /// What an operation answers.
    enum Reply: Sendable {
        case now(XMLNode, action: String)
        /// PullMessages, which may wait.
        case pull(id: String, most: Int, seconds: Double)
    }

    /// - Parameters:
    ///   - subscription: The one whose address was asked; nil for the service's own.
    ///   - now: Nanoseconds of the monotonic clock.
    /// - Returns: Nil for an operation that it does not have.
    func answer(_ call: Call, subscription: String?, now: Int64) throws(SOAPFault) -> Reply? {
        let port = "http://www.onvif.org/ver10/events/wsdl/EventPortType/"
        let pullPoint = "http://www.onvif.org/ver10/events/wsdl/PullPointSubscription/"
        let manager = "http://docs.oasis-open.org/wsn/bw-2/SubscriptionManager/"
        switch call.body.name {
        case "GetServiceCapabilities":
            return .now(
                XMLNode("tev:GetServiceCapabilitiesResponse", [], [Self.capabilities]),
                action: port + "GetServiceCapabilitiesResponse")
        case "GetEventProperties":
            return .now(properties(), action: port + "GetEventPropertiesResponse")
        case "CreatePullPointSubscription":
            return .now(
                try create(call, now: now), action: port + "CreatePullPointSubscriptionResponse")
        case "PullMessages":
            let id = try known(subscription)
            guard let seconds = XMLTime.duration(call.token("Timeout")) else {
                throw .sender("ter:InvalidArgVal", "The timeout must be a duration, such as PT1M.")
            }
            return .pull(id: id, most: Int(call.token("MessageLimit")) ?? 1, seconds: seconds)
        case "SetSynchronizationPoint":
            guard desk.synchronise(try known(subscription), wall: call.wall, now: now) else { throw Self.unknown }
            return .now(
                XMLNode("tev:SetSynchronizationPointResponse"), action: pullPoint + "SetSynchronizationPointResponse")
        case "Renew":
            let id = try known(subscription)
            guard let left = desk.renew(id, seconds: try Self.seconds(call, "TerminationTime"), now: now) else {
                throw Self.unknown
            }
            return .now(
                XMLNode("wsnt:RenewResponse", [], Self.times(call.wall, left).reversed()),
                action: manager + "RenewResponse")
        case "Unsubscribe":
            guard desk.unsubscribe(try known(subscription)) else { throw Self.unknown }
            return .now(XMLNode("wsnt:UnsubscribeResponse"), action: manager + "UnsubscribeResponse")
        default: return nil
        }
    }

    private static let unknown = SOAPFault.sender(
        "ter:InvalidArgVal", reason: "There is no such subscription. Subscribe again.", status: 400)

    private func known(_ subscription: String?) throws(SOAPFault) -> String {
        guard let subscription, desk.has(subscription) else { throw Self.unknown }
        return subscription
    }

    /// Current and end time, in this order; Renew has them the other way.
    private static func times(_ wall: Int64, _ left: Double) -> [XMLNode] {
        [
            XMLNode("wsnt:CurrentTime", XMLTime.text(wall)),
            XMLNode("wsnt:TerminationTime", XMLTime.text(wall + Int64(left.rounded()))),
        ]
    }

    /// The time that a client asks for, as a duration or as a time; nil where it asks for none.
    private static func seconds(_ call: Call, _ name: String) throws(SOAPFault) -> Double? {
        let text = call.token(name)
        if text.isEmpty { return nil }
        if let seconds = XMLTime.duration(text) { return seconds }
        if let end = XMLTime.seconds(text) { return Double(end - call.wall) }
        throw .sender("ter:InvalidArgVal", "\(name) must be a duration or a time, such as PT10M.")
    }

    private func create(_ call: Call, now: Int64) throws(SOAPFault) -> XMLNode {
        var filter = TopicFilter.all
        if let asked = call.body["Filter"] {
            if let expression = asked["TopicExpression"] { filter = TopicFilter(expression.value) }
            guard asked["MessageContent"] == nil else {
                throw .sender("wsnt:InvalidFilterFault", "Filters by the content of messages are not supported.")
            }
        }
        let seconds = try Self.seconds(call, "InitialTerminationTime")
        guard let (id, left) = desk.subscribe(filter, from: call.client, seconds: seconds, wall: call.wall, now: now)
        else {
            throw .receiver(
                "ter:Action", "ter:MaxSubscriptions",
                reason:
                    "There are \(EventDesk.mostSubscriptions) subscriptions that clients use. Try again in \(Int(EventDesk.idleTime)) s."
            )
        }
        return XMLNode(
            "tev:CreatePullPointSubscriptionResponse", [],
            [
                XMLNode(
                    "tev:SubscriptionReference", [],
                    [XMLNode("wsa:Address", call.base + ServicePath.subscription + id)])
            ] + Self.times(call.wall, left))
    }

    // MARK: Messages

    static let pullAction = "http://www.onvif.org/ver10/events/wsdl/PullPointSubscription/PullMessagesResponse"

    static func pulled(_ pulled: EventDesk.Pulled, wall: Int64) -> XMLNode {
        XMLNode(
            "tev:PullMessagesResponse", [],
            [
                XMLNode("tev:CurrentTime", XMLTime.text(wall)),
                XMLNode("tev:TerminationTime", XMLTime.text(wall + Int64(pulled.left.rounded()))),
            ] + pulled.messages.map(notification))
    }

    private static let concrete = "http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet"

    private static func notification(_ message: EventDesk.Message) -> XMLNode {
        let source = message.change.property.source
        let shape = shape(message.topic)
        return XMLNode(
            "wsnt:NotificationMessage", [],
            [
                XMLNode("wsnt:Topic", message.topic, [("Dialect", concrete)]),
                XMLNode(
                    "wsnt:Message", [],
                    [
                        XMLNode(
                            "tt:Message",
                            [
                                ("UtcTime", XMLTime.text(message.at)),
                                ("PropertyOperation", message.isFirst ? "Initialized" : "Changed"),
                            ],
                            [
                                XMLNode(
                                    "tt:Source", [],
                                    shape.sources.map { item($0, $0 == "Rule" ? "framehost" : source) }),
                                XMLNode("tt:Data", [], [item(shape.data, message.change.isTrue ? "true" : "false")]),
                            ])
                    ]),
            ])
    }

    private static func item(_ name: String, _ value: String) -> XMLNode {
        XMLNode("tt:SimpleItem", [("Name", name), ("Value", value)])
    }

    /// Names of the items of a topic's messages (ONVIF's imaging and analytics specifications).
    private static func shape(_ topic: String) -> (sources: [String], data: String) {
        switch topic {
        case "tns1:VideoSource/MotionAlarm": (["Source"], "State")
        case "tns1:RuleEngine/CellMotionDetector/Motion":
            (["VideoSourceConfigurationToken", "VideoAnalyticsConfigurationToken", "Rule"], "IsMotion")
        default: (["Source"], "State")
        }
    }

    private func properties() -> XMLNode {
        let kinds = desk.kinds
        var roots: [(name: String, children: [XMLNode])] = []
        for kind in EventProperty.Kind.allCases where kinds.contains(kind) {
            for topic in TopicFilter.topics[kind, default: []] {
                let words = topic.split(separator: "/").map(String.init)
                var node = Self.description(topic, String(words.last ?? ""))
                for word in words.dropFirst().dropLast().reversed() { node = XMLNode(word, [], [node]) }
                if let index = roots.firstIndex(where: { $0.name == words[0] }) {
                    roots[index].children.append(node)
                } else {
                    roots.append((words[0], [node]))
                }
            }
        }
        return XMLNode(
            "tev:GetEventPropertiesResponse", [],
            [
                XMLNode("tev:TopicNamespaceLocation", "http://www.onvif.org/onvif/ver10/topics/topicns.xml"),
                XMLNode("wsnt:FixedTopicSet", true),
                XMLNode("wstop:TopicSet", [], roots.map { XMLNode($0.name, [], $0.children) }),
                XMLNode("wsnt:TopicExpressionDialect", Self.concrete),
                XMLNode(
                    "wsnt:TopicExpressionDialect", "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"),
                XMLNode(
                    "tev:MessageContentFilterDialect",
                    "http://www.onvif.org/ver10/tev/messageContentFilter/ItemFilter"),
                XMLNode(
                    "tev:MessageContentSchemaLocation", "http://www.onvif.org/onvif/ver10/schema/onvif.xsd"),
            ])
    }

    private static func description(_ topic: String, _ name: String) -> XMLNode {
        let shape = shape(topic)
        return XMLNode(
            name, [("wstop:topic", "true")],
            [
                XMLNode(
                    "tt:MessageDescription", [("IsProperty", "true")],
                    [
                        XMLNode(
                            "tt:Source", [],
                            shape.sources.map { source in
                                XMLNode(
                                    "tt:SimpleItemDescription",
                                    [("Name", source), ("Type", source == "Rule" ? "xs:string" : "tt:ReferenceToken")])
                            }),
                        XMLNode(
                            "tt:Data", [],
                            [XMLNode("tt:SimpleItemDescription", [("Name", shape.data), ("Type", "xs:boolean")])]),
                    ])
            ])
    }
}
