// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork
import Glibc

/// The servers of this process by port: stages of one port share one server.
final class ServerRegistry: Sendable {
    static let shared = ServerRegistry()

    private struct Entry {
        var server: RTSPServer
        var policy: SessionPolicy
        var expiry: RepeatedTask
    }

    private struct Book {
        var servers: [Int: Entry] = [:]
        /// Ports whose server is closing. They will be free in a moment.
        var closing: Set<Int> = []
        /// Ports that were closed here. A program that was started at that moment has a copy of the socket, and keeps
        /// the port a little longer.
        var released: Set<Int> = []
    }

    private let book = NIOLockedValueBox(Book())
    /// The longest wait for a port that this process is just releasing, in steps of 5 ms.
    private static let mostSteps = 400

    /// [control thread] Adds a stream to the server of its port, which is opened for the first one.
    ///
    /// - Throws: ``FrameHostError`` where the port cannot be opened, is served with other settings, or already has
    ///   the path.
    func attach(_ stream: RTSPServer.Stream, _ served: ServedPath, _ endpoint: ServerEndpoint, policy: SessionPolicy)
        throws -> RTSPServer
    {
        for step in 1...Self.mostSteps {
            let server = try book.withLockedValue { book -> RTSPServer? in
                if book.closing.contains(endpoint.port) { return nil }
                do {
                    return try Self.attach(stream, served, endpoint, policy, &book.servers)
                } catch let error as FrameHostError
                    where error.code == .unavailable && book.released.contains(endpoint.port) && step < Self.mostSteps
                {
                    return nil
                }
            }
            if let server { return server }
            usleep(5000)
        }
        throw FrameHostError(
            .unavailable, place: "port", what: "port \(endpoint.port) is still in use by the stream that had it before",
            remedy: "Start the chain again, or repeat the change of the running chain, in a few seconds.")
    }

    private static func attach(
        _ stream: RTSPServer.Stream, _ served: ServedPath, _ endpoint: ServerEndpoint, _ policy: SessionPolicy,
        _ servers: inout [Int: Entry]
    ) throws -> RTSPServer {
        let path = stream.hub.path
        if let entry = servers[endpoint.port] {
            guard entry.server.endpoint == endpoint else {
                throw FrameHostError(
                    .invalidConfiguration, place: "port",
                    what: "port \(endpoint.port) is already served with another address or certificate",
                    remedy:
                        "Give both stages the same 'address', 'certificate' and 'key', or give one of them another 'port'."
                )
            }
            guard entry.policy.timeoutSeconds == policy.timeoutSeconds,
                entry.policy.mostConnectionsPerAddress == policy.mostConnectionsPerAddress
            else {
                throw FrameHostError(
                    .invalidConfiguration, place: "port",
                    what:
                        "port \(endpoint.port) is already served with another 'sessionSeconds' or 'maxConnectionsPerAddress'",
                    remedy: "Give both stages \"sessionSeconds\": \(entry.policy.timeoutSeconds) and "
                        + "\"maxConnectionsPerAddress\": \(entry.policy.mostConnectionsPerAddress), "
                        + "or give one of them another 'port'.")
            }
            guard try entry.server.add(stream, served) else {
                throw FrameHostError(
                    .invalidConfiguration, place: "path", what: "port \(endpoint.port) already has a stream '\(path)'",
                    remedy: "Give each stage a 'path' of its own.")
            }
            return entry.server
        }
        let server = try RTSPServer.open(endpoint, policy: policy)
        do {
            _ = try server.add(stream, served)
        } catch {
            server.shutDown()
            throw error
        }
        let expiry = server.repeatEachSecond { [weak server] in server?.expire() }
        servers[endpoint.port] = Entry(server: server, policy: policy, expiry: expiry)
        return server
    }

    /// The server of a port, for tests.
    func server(port: Int) -> RTSPServer? { book.withLockedValue { $0.servers[port]?.server } }

    /// [stage thread] Ends a stream and removes it. The last stream closes its server. No lock is held while readers
    /// leave or connections close.
    ///
    /// - Parameter isHurried: True once the run is asked to stop at once.
    func detach(_ path: String, from server: RTSPServer, isHurried: () -> Bool) {
        server.sendAway(path, isHurried: isHurried)
        let port = server.endpoint.port
        let last = book.withLockedValue { book -> Entry? in
            guard server.remove(path), let entry = book.servers[port], entry.server === server else { return nil }
            book.servers[port] = nil
            book.closing.insert(port)
            return entry
        }
        guard let last else { return }
        last.expiry.cancel()
        server.shutDown()
        book.withLockedValue {
            $0.closing.remove(port)
            $0.released.insert(port)
        }
    }
}
