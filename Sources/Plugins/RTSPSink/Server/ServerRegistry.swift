import FrameCore
import FrameNetwork

/// The servers of this process by port: stages of one port share one server.
final class ServerRegistry: Sendable {
    static let shared = ServerRegistry()

    private struct Entry {
        var server: RTSPServer
        var policy: SessionPolicy
        var expiry: RepeatedTask
    }

    private let servers = NIOLockedValueBox<[Int: Entry]>([:])

    /// [control thread] Puts a stream on the server of its port, which is opened for the first one.
    ///
    /// - Throws: ``FrameHostError`` where the port cannot be had, serves otherwise, or has the path already.
    func attach(_ stream: RTSPServer.Stream, _ served: ServedPath, _ endpoint: ServerEndpoint, policy: SessionPolicy) throws -> RTSPServer {
        try servers.withLockedValue { servers in
            let path = stream.hub.path
            if let entry = servers[endpoint.port] {
                guard entry.server.endpoint == endpoint else {
                    throw FrameHostError(
                        .invalidConfiguration, what: "port \(endpoint.port) is served already, with another address or certificate",
                        remedy: "Give both stages the same 'address', 'certificate' and 'key', or another 'port'.")
                }
                guard entry.policy.timeoutSeconds == policy.timeoutSeconds,
                    entry.policy.mostConnectionsPerAddress == policy.mostConnectionsPerAddress
                else {
                    throw FrameHostError(
                        .invalidConfiguration,
                        what: "port \(endpoint.port) is served already, with another 'sessionSeconds' or 'maxConnectionsPerAddress'",
                        remedy: "Give both stages \"sessionSeconds\": \(entry.policy.timeoutSeconds) and "
                            + "\"maxConnectionsPerAddress\": \(entry.policy.mostConnectionsPerAddress), or another 'port'.")
                }
                guard entry.server.add(stream, served) else {
                    throw FrameHostError(
                        .invalidConfiguration, what: "port \(endpoint.port) has a stream '\(path)' already",
                        remedy: "Give each stage a 'path' of its own.")
                }
                return entry.server
            }
            let server = try RTSPServer.open(endpoint, policy: policy, usesUDP: true)
            _ = server.add(stream, served)
            let expiry = server.repeatEachSecond { [weak server] in server?.expire() }
            servers[endpoint.port] = Entry(server: server, policy: policy, expiry: expiry)
            return server
        }
    }

    /// [stage thread] Takes a stream off; the last one closes its server.
    func detach(_ path: String, from server: RTSPServer) {
        servers.withLockedValue { servers in
            guard server.remove(path), let entry = servers.removeValue(forKey: server.endpoint.port) else { return }
            entry.expiry.cancel()
            server.shutDown()
        }
    }
}
