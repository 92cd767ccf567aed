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
        let free = try FreePorts.find(6)
        (ports, routes) = (Array(free[..<3]), Array(free[3...]))
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
        _ = try server.finish(timeout: 20)
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
            Self.looker, ports.map(String.init).joined(separator: ","), what, name, timeout: 90)
        guard outcome.status == 0 else { throw TestFault("jetstream.py \(what) \(name): \(outcome.error)") }
        return outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

/// Ports of loopback that nobody has.
enum FreePorts {
    static func find(_ count: Int) throws -> [Int] {
        var sockets: [Int32] = []
        defer { for socket in sockets { close(socket) } }
        return try (0..<count).map { _ in
            let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            guard file >= 0 else { throw TestFault("no socket") }
            sockets.append(file)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(file, $0, size) == 0 && getsockname(file, $0, &size) == 0
                }
            }
            guard isBound else { throw TestFault("no free port") }
            return Int(UInt16(bigEndian: address.sin_port))
        }
    }
}
