// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork
import FrameSupport
import Glibc
import ServerAccess

/// Shows a running chain to people and programs, and lets them change it: an HTTP API with metrics, events and
/// pictures.
///
/// Described in docs/control.md, and its design in docs/design/021-live-operation.md.
final class ControlServer: Service {
    static let info = ServiceInfo(
        id: "control-server", summary: "Serves the chain's state, metrics, events, pictures and controls over HTTP.")

    private struct Running {
        var server: HTTPServer
        var api: ControlAPI
        var subscription: EventSubscription
        /// Passes new events on to the clients that read them.
        var relay: @Sendable () -> Void
        /// The ends of its threads.
        var ends: [WaitableFlag]
    }

    private let options: ControlServerOptions
    private let running = Locked<Running?>(nil)

    /// [control thread] Opens nothing: options arrive checked.
    init(options: ControlServerOptions) { self.options = options }

    /// A stage that listens on every address of this machine, or on this one, would find the port taken.
    var claims: [StageDemand.Claim] {
        guard let address = ListenAddress(options.listen), address.port != 0 else { return [] }
        return ["any", address.address].map {
            StageDemand.Claim(
                "tcp-port \(address.port) \($0)", option: "listen", what: "listens on port \(address.port), as does",
                remedy: "Set another port for one of them.")
        }
    }

    /// [control thread] Reads the files of token, users, certificate and key once, so that their faults are known before
    /// the run.
    func check(folder: String) throws {
        _ = try desk(folder)
        _ = try tls(folder)
    }

    private func desk(_ folder: String) throws -> LoginDesk {
        let token =
            try options.tokenFile.map { try AccessToken.read($0, folder: folder) }
            ?? options.token.flatMap { AccessToken($0) }
        let users = try options.users.map { users in
            try UserList.read(users) { AccessToken.path($0, folder: folder) }
        }
        return LoginDesk(token: token, seesOriginals: options.tokenSeesOriginals, users: users)
    }

    private func tls(_ folder: String) throws -> NIOSSLContext? {
        guard let certificate = options.certificate, let key = options.key else { return nil }
        return try ServerCertificate.context(
            certificate: AccessToken.path(certificate, folder: folder), key: AccessToken.path(key, folder: folder))
    }

    /// What is on its way to clients, the events that are kept for them, and the inbox for access units.
    var ownBytes: Int { AnswerMemory.usual + EventRing.mostBytes + UnitFanOut.inboxBytes }

    func readsFiles(folder: String) -> [String] {
        let users = options.users.flatMap { $0.hasPrefix("env:") ? nil : $0 }
        return [options.tokenFile, users, options.certificate, options.key].compactMap { $0 }.map {
            AccessToken.path($0, folder: folder)
        }
    }

    /// [control thread] Listens from here on.
    func start(_ control: any RunControl) throws {
        guard let address = ListenAddress(options.listen) else {
            throw FrameHostError(
                .broken, place: "listen",
                what: "'\(options.listen)' is not an address with a port, and was not refused before the start")
        }
        let desk = try desk(control.folder)
        let tls = try tls(control.folder)
        let memory = AnswerMemory()
        let pictures = PictureRequests(control, memory)
        let units = try UnitFanOut(control, memory)
        // Each run has an id of its own: the wall clock in base 36.
        let ring = EventRing(
            run: String(UInt64(bitPattern: control.clock.unixTime(at: control.clock.now())), radix: 36))
        let rates = RateWatch(control)
        let subscription = control.subscribe(capacity: EventSubscription.capacity)
        var made: ControlAPI?
        do {
            let ends = [
                try Self.start("control/events") { Self.relay(subscription, control, rates, desk, to: ring) },
                try Self.start("control/pictures") { pictures.run() },
                try Self.start("control/units") { units.run() },
            ]
            let server = try HTTPServer(address, tls: tls) { port in
                let api = ControlAPI(
                    control: control,
                    gate: Gate(
                        address: address, port: port, hosts: options.hosts, isSecure: tls != nil, desk: desk),
                    pictures: pictures, units: units, events: ring, rates: rates)
                made = api
                return api
            }
            guard let api = made else { return }
            running.withLock {
                $0 = Running(
                    server: server, api: api, subscription: subscription,
                    relay: { Self.relayOnce(subscription, control, to: ring) },
                    ends: ends)
            }
            announce(address, server.port, desk, control)
        } catch {
            ring.close()
            pictures.close()
            units.close()
            throw error
        }
    }

    private func announce(_ address: ListenAddress, _ port: Int, _ desk: LoginDesk, _ control: any RunControl) {
        var shown = address
        shown.port = port
        let isSecure = options.certificate != nil
        let url = "\(isSecure ? "https" : "http")://\(shown.authority)/"
        var details: [(key: String, value: JSONNode)] = [
            ("url", .string(url)), ("port", .number(port)), ("needsToken", .bool(desk.hasToken)),
        ]
        if desk.hasUsers { details.append(("hasUsers", .bool(true))) }
        control.post(
            "control-listening", level: .info, text: "The control server listens at \(url).",
            details: .object(details))
        guard desk.hasUsers, !isSecure, !address.isLoopback else { return }
        control.post(
            "control-unencrypted", level: .warning,
            text:
                "The control server listens at \(url) without TLS: passwords and pictures travel unencrypted. Set 'certificate' and 'key' of 'control', or listen on 127.0.0.1 behind a proxy with TLS.",
            details: ["url": .string(url)])
    }

    /// Starts a thread. What it returns is raised at the thread's end.
    private static func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws -> WaitableFlag {
        let end = WaitableFlag()
        try ServiceThread.start(name: name) {
            body()
            end.raise()
        }
        return end
    }

    /// Clients that read events at this moment.
    var viewerCount: Int { running.withLock { $0?.api.viewers.withLock { $0.events } ?? 0 } }

    /// WebSockets that are open at this moment.
    var socketCount: Int { running.withLock { $0?.api.viewers.withLock { $0.sockets } ?? 0 } }

    /// [service thread] Puts the run's events into the ring, and keeps the rates up to date, until the ring is closed.
    private static func relay(
        _ subscription: EventSubscription, _ control: any RunControl, _ rates: RateWatch, _ desk: LoginDesk,
        to ring: EventRing
    ) {
        while !ring.isClosed {
            if subscription.wait(seconds: 0.2) { relayOnce(subscription, control, to: ring) }
            ring.tick(MonotonicTime.now())
            rates.tick()
            for news in desk.takeNews() { report(news, control) }
        }
    }

    private static func report(_ news: LoginTries.News, _ control: any RunControl) {
        let tries = news.count == 1 ? "A login was" : "\(news.count) logins were"
        control.post(
            "login-failed", level: .warning,
            text: "\(tries) refused at the control server, from \(news.address.text): a wrong password or token.",
            details: .object(
                [
                    ("address", .string(news.address.text)), ("failures", .number(news.count)),
                    ("failuresInAll", .number(news.total)),
                ] + (news.name.map { [("name", .string($0))] } ?? [])))
    }

    /// Puts the run's newest events into the ring.
    private static func relayOnce(_ subscription: EventSubscription, _ control: any RunControl, to ring: EventRing) {
        let (events, lost) = subscription.take()
        if lost > 0 {
            let note: JSONNode = ["event": "events-lost", "count": .number(lost)]
            ring.append(note.text())
        }
        for event in events { ring.append(control.json(of: event).text()) }
    }

    /// [thread of the end] Closes connections that clients still use by then.
    func stop(within milliseconds: Int) {
        let end = MonotonicTime.now() + Int64(milliseconds) * 1_000_000
        let running = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let running else { return }
        running.relay()
        running.api.events.close()
        running.subscription.endWaits()
        running.api.pictures.close()
        running.api.units.close()
        // Streams whose clients read end by themselves, with the last events.
        MonotonicTime.wait(milliseconds: 150, until: end) {
            running.api.viewers.withLock { $0.events + $0.pictures } == 0
        }
        running.server.stop(by: end)
        for one in running.ends { one.wait(until: end) }
    }
}
