// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import ServerAccess

/// Keeps what the device says up to date: looks at the chain once a second, hears its events, tells of wrong logins.
final class DeviceWatch: Sendable {
    /// Time between two looks at the chain, and between two looks for networks, nanoseconds.
    private static let (lookPause, joinPause): (Int64, Int64) = (1_000_000_000, 10_000_000_000)

    /// Set before ``run()``.
    let discovery = Locked<Discovery?>(nil)
    private let control: any RunControl
    private let facts: Locked<DeviceFacts>
    private let login: Locked<LoginCheck>
    private let desk: EventDesk
    private let audience: Audience
    private let isLoopback: Bool
    private let subscription: EventSubscription
    /// For the formats of stages. No unit finds room in it.
    private let inbox: UnitInbox
    private let state = Locked(State())

    private struct State {
        /// Ports and paths that sinks have told of.
        var serving: [String: (port: Int, path: String)] = [:]
        var leftOut: Set<FactsReader.LeftOut> = []
        var formats = FactsReader.Formats()
        var isClosed = false
    }

    /// - Parameters:
    ///   - audience: That of all streams of the device.
    ///   - isLoopback: Whether only programs of this machine reach the device.
    /// - Throws: ``FrameHostError`` `.exhausted`.
    init(
        _ control: any RunControl, facts: Locked<DeviceFacts>, login: Locked<LoginCheck>, desk: EventDesk,
        audience: Audience, isLoopback: Bool
    ) throws {
        (self.control, self.facts, self.login, self.desk) = (control, facts, login, desk)
        (self.audience, self.isLoopback) = (audience, isLoopback)
        inbox = try UnitInbox(byteCount: 1)
        subscription = control.subscribe(capacity: EventSubscription.capacity)
    }

    private func wall() -> Int64 { control.clock.unixTime(at: control.clock.now()) / 1_000_000_000 }

    /// [service thread] Until ``close()``.
    func run() {
        var (nextLook, nextJoin) = (Int64.min, Int64.min)
        while !state.withLock({ $0.isClosed }) {
            if subscription.wait(seconds: 0.1) { hear() }
            let now = MonotonicTime.now()
            if now >= nextLook {
                look()
                nextLook = now + Self.lookPause
            }
            if now >= nextJoin, let discovery = discovery.withLock({ $0 }) {
                nextJoin = now + (discovery.join() ? Self.joinPause : Self.lookPause)
            }
            desk.tick(now: now)
            for news in login.withLock({ $0.takeNews(now: now) }) { report(news) }
        }
    }

    /// [any thread] Ends ``run()``.
    func close() {
        state.withLock { $0.isClosed = true }
        subscription.endWaits()
    }

    private func hear() {
        for event in subscription.take().events {
            guard let stage = event.stage else { continue }
            let now = MonotonicTime.now()
            switch event.name {
            case "serving":
                guard let port = event.details["port"]?.asInt, (1...65_535).contains(port),
                    let path = event.details["path"]?.asString, path.hasPrefix("/")
                else { continue }
                state.withLock { $0.serving[stage] = (port, path) }
                readUsers()
            case "motion-began", "motion-ended":
                desk.note(.motion, stage: stage, isTrue: event.name == "motion-began", wall: wall(), now: now)
            case "faces":
                desk.note(
                    .faces, stage: stage, isTrue: (event.details["count"]?.asInt ?? 0) > 0, wall: wall(), now: now)
            default: continue
            }
        }
    }

    /// A sink has begun to serve, and has read its users for that: the device must have the same.
    private func readUsers() {
        guard let place = audience.users else { return }
        do {
            let users = try CredentialsFile.read(place) { $0.hasPrefix("/") ? $0 : "\(control.folder)/\($0)" }
            login.withLock { $0.change(users) }
        } catch {
            control.post(
                "onvif-users-unreadable", level: .warning,
                text: "The ONVIF device goes on with the users that it has: \(error)", details: [:])
        }
    }

    /// [service thread; the control thread before that] Looks at the chain.
    func look() {
        var new = facts.withLock { $0 }
        let serving = state.withLock { $0.serving }
        var formats = state.withLock { $0.formats }
        let reader = FactsReader(
            control: control, audience: audience, isLoopback: isLoopback, inbox: inbox)
        let left = reader.read(into: &new, serving: serving, formats: &formats)
        facts.withLock { $0 = new }
        desk.setStages(
            [.motion: new.motionStages, .faces: new.faceStages], wall: wall(), now: MonotonicTime.now())
        let news = state.withLock { state in
            defer { (state.leftOut, state.formats) = (left, formats) }
            return left.subtracting(state.leftOut)
        }
        for one in news.sorted(by: { $0.stage < $1.stage }) { report(one) }
    }

    private func report(_ left: FactsReader.LeftOut) {
        let reason =
            switch left.why {
            case .noUsers: "it has no users, and the device has"
            case .otherUsers: "it has other users than the device"
            case .otherAllow: "its 'allow' is another one than that of the device"
            case .loopback: "only programs of this machine reach it"
            case .tooMany: "a device has at most \(DeviceFacts.mostStreams) streams"
            }
        control.post(
            "onvif-stream-left-out", level: .warning,
            text: "The stream of '\(left.stage)' is not shown over ONVIF: \(reason).",
            details: ["stage": .string(left.stage), "why": .string(left.why.rawValue)])
    }

    private func report(_ news: LoginTries.News) {
        let tries = news.count == 1 ? "A login was" : "\(news.count) logins were"
        control.post(
            "login-failed", level: .warning,
            text: "\(tries) refused at the ONVIF device, from \(news.address.text): a wrong name or password.",
            details: .object(
                [
                    ("address", .string(news.address.text)), ("failures", .number(news.count)),
                    ("failuresInAll", .number(news.total)),
                ] + (news.name.map { [("name", .string($0))] } ?? [])))
    }
}
