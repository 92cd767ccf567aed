// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP
import FrameSupport
import Glibc
import ServerAccess

/// Makes the streams of `rtsp-sink` an ONVIF device, which video recorders and Home Assistant find by themselves.
///
/// README.md describes it, and docs/design/049-onvif.md gives the reasons.
final class ONVIFService: Service {
    static let info = ServiceInfo(
        id: "onvif",
        summary:
            "Makes the streams of rtsp-sink an ONVIF camera, with snapshots and events, for video recorders and Home Assistant."
    )

    private struct Running {
        var server: WebServer
        var discovery: Discovery?
        var watch: DeviceWatch
        var snapshots: Snapshots
        var desk: EventDesk
        /// The ends of its threads.
        var ends: [WaitableFlag]
    }

    private let options: ONVIFOptions
    private let running = Locked<Running?>(nil)

    /// [control thread] Opens nothing: options arrive checked.
    init(options: ONVIFOptions) { self.options = options }

    /// A stage or service that listens there would find the port taken.
    var claims: [StageDemand.Claim] {
        guard let address = ListenAddress(options.listen), address.port != 0 else { return [] }
        return ["any", address.address].map {
            StageDemand.Claim(
                "tcp-port \(address.port) \($0)", option: "listen", what: "listens on port \(address.port), as does",
                remedy: "Set another port for one of them.")
        }
    }

    /// Requests under way, pictures that are shared for a moment, events of subscriptions.
    var ownBytes: Int { 16 << 20 }

    /// [control thread] Listens from here on.
    func start(_ control: any RunControl) throws {
        guard let address = ListenAddress(options.listen) else {
            throw FrameHostError(
                .broken, place: "listen",
                what: "'\(options.listen)' is not an address with a port, and was not refused before the start")
        }
        let sinks = FactsReader.sinks(FactsReader.Options(control), ChainGraph(control.plan))
        let audience = try audience(sinks)
        let users = try audience.users.map { place in
            try CredentialsFile.read(place) { $0.hasPrefix("/") ? $0 : "\(control.folder)/\($0)" }
        }
        let facts = Locked(
            DeviceFacts(
                name: options.name ?? control.chainName, location: options.location,
                identity: DeviceIdentity(machine: "", chain: "", port: 0)))
        let login = Locked(LoginCheck(users: users))
        let (desk, snapshots) = (EventDesk(), Snapshots(control))
        let watch = try DeviceWatch(
            control, facts: facts, login: login, desk: desk, audience: audience, isLoopback: address.isLoopback)
        let hosts = Set(options.hosts.compactMap { HostName($0)?.name })
        let server = try WebServer(address) { port in
            facts.withLock {
                $0.identity = DeviceIdentity(
                    machine: DeviceIdentity.machine(), chain: control.chainName, port: port,
                    address: address.isWildcard ? "" : address.address)
            }
            watch.look()
            return DeviceEndpoint(
                facts: facts, login: login, media: MediaService { control.requestKeyframe(of: $0) },
                events: EventService(desk: desk), snapshots: snapshots, port: port, hosts: hosts,
                wall: { control.clock.unixTime(at: control.clock.now()) / 1_000_000_000 })
        }
        let discovery = discovery(address, server.port, facts, control)
        do {
            watch.discovery.withLock { $0 = discovery }
            let ends = [
                try Self.start("onvif/watch") { watch.run() }, try Self.start("onvif/pictures") { snapshots.run() },
            ]
            running.withLock {
                $0 = Running(
                    server: server, discovery: discovery, watch: watch, snapshots: snapshots, desk: desk, ends: ends)
            }
        } catch {
            discovery?.close()
            watch.close()
            snapshots.close()
            server.stop(by: MonotonicTime.now() + 100_000_000)
            throw error
        }
        announce(address, server.port, users == nil, control)
    }

    /// Who may play all streams. Without users everybody may whose address is allowed.
    private func audience(_ sinks: [FactsReader.Sink]) throws -> Audience {
        guard let first = sinks.first else {
            throw FrameHostError(
                .invalidConfiguration, place: "", what: "the chain has no 'rtsp-sink', whose streams ONVIF could show",
                remedy: "Add an 'rtsp-sink' behind an encoder, or leave 'onvif' out.")
        }
        if let other = sinks.first(where: { $0.audience != first.audience }) {
            let option = other.audience.users == first.audience.users ? "allow" : "users"
            throw FrameHostError(
                .invalidConfiguration, place: "",
                what:
                    "'\(first.id)' and '\(other.id)' have different '\(option)', and an ONVIF device has one for all its streams",
                remedy: "Give all 'rtsp-sink' of the chain the same '\(option)', or use a chain for each.")
        }
        guard !first.audience.allow.contains(where: { AddressRange($0) == nil }) else {
            throw FrameHostError(
                .invalidConfiguration, place: "",
                what: "'allow' of '\(first.id)' has a variable in it, which 'onvif' cannot see",
                remedy: "Write the addresses.")
        }
        guard let users = first.audience.users else {
            guard options.anybody else {
                throw FrameHostError(
                    .invalidConfiguration, place: "anybody",
                    what: "'\(first.id)' has no users, so everybody on the network could use the ONVIF device",
                    remedy: "Set 'users' of 'rtsp-sink', or \"anybody\": true.")
            }
            return first.audience
        }
        guard !users.contains("${") else {
            throw FrameHostError(
                .invalidConfiguration, place: "",
                what: "'users' of '\(first.id)' has a variable in it, which 'onvif' cannot see",
                remedy: "Write the file's name, or env:NAME for a variable with lines name:password.")
        }
        guard !options.anybody else {
            throw FrameHostError(
                .invalidConfiguration, place: "anybody",
                what: "'anybody' would show everybody what '\(first.id)' shows its users only",
                remedy: "Leave 'anybody' out: clients log in with the users of 'rtsp-sink'.")
        }
        return first.audience
    }

    private func discovery(
        _ address: ListenAddress, _ port: Int, _ facts: Locked<DeviceFacts>, _ control: any RunControl
    ) -> Discovery? {
        guard options.discovery, !address.isLoopback, !address.isIPv6 || address.isWildcard else { return nil }
        var only: UInt32?
        if !address.isWildcard {
            var number = in_addr()
            guard inet_pton(AF_INET, address.address, &number) == 1 else { return nil }
            only = UInt32(bigEndian: number.s_addr)
        }
        let started = UInt32(
            truncatingIfNeeded: max(control.clock.unixTime(at: control.clock.now()) / 1_000_000_000, 0))
        do {
            return try Discovery(
                NetworkLoop.ready(), facts: facts, httpPort: port, address: only, started: started)
        } catch {
            let cause = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
            control.post(
                "onvif-discovery-unavailable", level: .warning,
                text:
                    "ONVIF recorders cannot find the device by themselves: UDP port \(Discovery.port) cannot be had: \(cause). Everything else works; type the device's address.",
                details: ["port": .number(Discovery.port)])
            return nil
        }
    }

    private func announce(_ address: ListenAddress, _ port: Int, _ isOpen: Bool, _ control: any RunControl) {
        var hosts = [address.isIPv6 ? "[\(address.address)]" : address.address]
        if address.isWildcard {
            let own = MachineAddress.all().filter { !$0.isIPv6 }.map(\.text)
            hosts = own.isEmpty ? ["127.0.0.1"] : Array(own.prefix(3))
        }
        let urls = hosts.map { "http://\($0):\(port)/" }
        control.post(
            "onvif-listening", level: .info,
            text:
                "The ONVIF device is at \(urls.joined(separator: " or "))\(isOpen && !address.isLoopback ? ", for everybody on the network" : "").",
            details: ["url": .string(urls.first ?? ""), "port": .number(port), "anybody": .bool(isOpen)])
    }

    /// Starts a thread. What it returns is raised at the thread's end.
    private static func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws -> WaitableFlag {
        let end = WaitableFlag()
        try ServiceThread.start(name: name, mostlyWaits: true) {
            body()
            end.raise()
        }
        return end
    }

    /// [thread of the end] Says bye, and closes what clients still use.
    func stop(within milliseconds: Int) {
        let end = MonotonicTime.now() + Int64(milliseconds) * 1_000_000
        let running = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let running else { return }
        running.discovery?.close()
        running.watch.close()
        running.desk.close()
        running.snapshots.close()
        running.server.stop(by: end)
        for one in running.ends { one.wait(until: end) }
    }
}
