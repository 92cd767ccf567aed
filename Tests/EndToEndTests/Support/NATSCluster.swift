// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// Three NATS servers with JetStream on loopback, in a folder of a test's own.
final class NATSCluster {
    static let server = Tool(name: "nats-server")
    static let looker = Repository.root.appending(path: "Tests/Tools/jetstream.py").path

    private let workspace: Workspace
    private let ports: [Int]
    private let routes: [Int]
    private var servers: [RunningProgram?] = [nil, nil, nil]

    init(_ workspace: Workspace) throws {
        self.workspace = workspace
        ports = try (0..<3).map { _ in try RTSPStream.freePort() }
        routes = try (0..<3).map { _ in try RTSPStream.freePort() }
        for index in 0..<3 {
            try workspace.write(
                "nats\(index).conf",
                """
                server_name: n\(index)
                listen: 127.0.0.1:\(ports[index])
                jetstream { store_dir: "\(workspace.path("store\(index)"))", max_mem: 16M, max_file: 256M }
                cluster { name: test, listen: 127.0.0.1:\(routes[index]), routes: [\(routes.map { "nats://127.0.0.1:\($0)" }.joined(separator: ", "))] }
                """)
        }
    }

    /// For the chain file.
    var addresses: String { ports.map { "\"nats://127.0.0.1:\($0)\"" }.joined(separator: ", ") }

    func start() throws {
        for index in 0..<3 where servers[index] == nil { try start(index) }
        _ = try look("ready", "3")
    }

    func start(_ index: Int) throws {
        servers[index] = try Self.server.start(["-c", workspace.path("nats\(index).conf")])
    }

    /// `kill -9`.
    func end(_ index: Int) throws {
        guard let server = servers[index] else { return }
        kill(server.pid, SIGKILL)
        _ = try server.finish()
        servers[index] = nil
    }

    func end() throws { for index in 0..<3 { try end(index) } }

    /// Kills the stream's leader with -9 and starts it again.
    func killLeader(of stream: String, away seconds: Double) throws {
        let name = try look("leader", stream)
        guard let index = Int(name.dropFirst()) else { throw TestFault("no leader: \(name)") }
        try end(index)
        Thread.sleep(forTimeInterval: seconds)
        try start(index)
    }

    /// The ids in the stream, in its order.
    func ids(_ stream: String) throws -> [String] {
        try look("dump", stream).split(separator: "\n").map { String($0.split(separator: " ")[2]) }
    }

    func messages(_ stream: String) throws -> [(subject: String, id: String, event: JSON)] {
        try look("dump", stream).split(separator: "\n").map { line in
            let parts = line.split(separator: " ", maxSplits: 3)
            return (String(parts[1]), String(parts[2]), try JSON(parsing: String(parts[3])))
        }
    }

    func count(_ stream: String) throws -> Int { Int(try look("count", stream)) ?? 0 }

    private func look(_ what: String, _ name: String) throws -> String {
        let outcome = try Tool.python.run(
            Self.looker, ports.map(String.init).joined(separator: ","), what, name)
        guard outcome.status == 0 else { throw TestFault("jetstream.py \(what) \(name): \(outcome.error)") }
        return outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
