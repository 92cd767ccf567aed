// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reports readers that come and go as events, and counts them. [any thread]
struct ReaderReports: Sendable {
    let context: StageContext
    let path: String
    let totals = ReaderTotals()

    var report: @Sendable (ReaderEvent) -> Void {
        { event in
            totals.count(event)
            switch event {
            case .joined(let order): joined(order)
            case .left(let figures, let departure, let nanoseconds): left(figures, departure, nanoseconds)
            case .refused(let news): refused(news)
            case .failedLogins(let news): failedLogins(news)
            }
        }
    }

    private func joined(_ order: PlayOrder) {
        context.post(
            "client-joined", text: "\(order.peer) plays \(path) over \(order.transport.name.uppercased()).",
            details: JSONNode.object(
                [
                    ("path", .string(path)), ("address", .string(order.peer.description)),
                    ("transport", .string(order.transport.name)),
                ]
                    + (order.user.map { [("user", JSONNode.string($0))] } ?? [])))
    }

    private func left(_ figures: ReaderFigures, _ departure: Departure, _ nanoseconds: Int64) {
        let tenths = nanoseconds / 100_000_000
        context.post(
            "client-left",
            text: "\(figures.peer) left \(path) after \(tenths / 10).\(tenths % 10) s: \(departure.rawValue).",
            details: JSONNode.object(
                [("path", .string(path)), ("why", .string("\(departure)")), ("seconds", .number(Double(tenths) / 10))]
                    + (Self.details(figures).asObject ?? []).map { ($0.key, $0.value) }))
    }

    private func refused(_ news: Refusals.News) {
        let what =
            news.count == 1 ? "1 connection was refused" : "\(news.count) connections were refused, the last one"
        context.post(
            "connections-refused", text: "\(what) because \(news.reason).",
            details: ["connections": .number(news.count), "why": .string(news.reason)])
    }

    private func failedLogins(_ news: FailedLogins.News) {
        let times = news.count == 1 ? "once" : "\(news.count) times"
        let total = news.total > news.count ? " (\(news.total) so far)" : ""
        let who = news.address?.description ?? "Further addresses"
        let often = "\(times)\(total)"
        let text =
            switch news.kind {
            case .password:
                "\(who) failed to log in to \(path) \(often): a wrong name or password, or a player that cannot log in as 'authentication' asks."
            case .address:
                "\(who) asked for \(path) \(often), but 'allow' does not list \(news.address == nil ? "these addresses" : "this address")."
            }
        context.post(
            news.kind == .password ? "login-failed" : "address-refused", level: .warning,
            text: text,
            details: JSONNode.object(
                [("path", .string(path)), ("failures", .number(news.count)), ("failuresInAll", .number(news.total))]
                    + (news.address.map { [("address", JSONNode.string($0.description))] } ?? [])))
    }

    /// The details of an event about a reader.
    static func details(_ figures: ReaderFigures) -> JSONNode {
        .object(
            [
                ("address", .string(figures.peer.description)), ("transport", .string(figures.transport)),
                ("queueMs", .number(figures.queueMs)),
                ("droppedUnits", .number(figures.droppedUnits)), ("refusedPackets", .number(figures.refusedPackets)),
                ("packetsLost", .number(figures.packetsLost)),
                ("lossPercent", .number(Double(figures.fractionLost) / 2.56)),
            ]
                + (figures.sound.map { sound in
                    [
                        (
                            "sound",
                            .object([
                                ("droppedUnits", .number(sound.droppedUnits)),
                                ("packetsLost", .number(sound.packetsLost)),
                                ("lossPercent", .number(Double(sound.fractionLost) / 2.56)),
                            ])
                        )
                    ]
                } ?? []) + (figures.user.map { [("user", JSONNode.string($0))] } ?? []))
    }
}
