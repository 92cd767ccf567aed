// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization
import Testing

/// A program that sends a stream, killed with the value.
final class Peer {
    private let process = Process()

    /// - Parameter program: A path.
    init(_ program: String, _ arguments: [String]) throws {
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    deinit { kill() }

    /// ffmpeg with a moving picture in real time, to `url`.
    static func ffmpeg(
        to url: String, size: String = "160x120", rate: Int = 25, seconds: Int = 600, format: String = "mpegts",
        encoder: [String] = [], options: [String] = []
    ) throws -> Peer {
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        return try Peer(
            program,
            [
                "-nostdin", "-v", "quiet", "-re", "-f", "lavfi", "-i",
                "testsrc2=size=\(size):rate=\(rate):duration=\(seconds)", "-pix_fmt", "yuv420p", "-c:v", "libx264",
                "-preset", "ultrafast", "-tune", "zerolatency", "-g", "10", "-threads", "1",
            ] + encoder + ["-f", format] + options + [url])
    }

    func kill() {
        guard process.isRunning else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// It stands still, with all its sockets open.
    func freeze() { Glibc.kill(process.processIdentifier, SIGSTOP) }
    func thaw() { Glibc.kill(process.processIdentifier, SIGCONT) }

    private static let nextPort = Atomic<Int>(Int(getpid()) % 2000)

    /// A port nobody has at the moment, below those that the kernel hands out.
    static func freePort() throws -> Int {
        for _ in 0..<200 {
            let port = 20_000 + nextPort.wrappingAdd(1, ordering: .relaxed).oldValue % 6000
            if let listener = try? Listener(port: port) {
                listener.close()
                return port
            }
        }
        throw Tool.Failed(status: -1)
    }
}

/// A TCP server of the test's own on the loopback: it accepts, and says nothing but what it is told to.
final class Listener: @unchecked Sendable {
    let port: Int
    private let socket: Int32
    private let accepted = Mutex<[Int32]>([])

    init(port: Int = 0) throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        var one: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, 4)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, size) == 0 && listen(socket, 8) == 0 && getsockname(socket, $0, &size) == 0
            }
        }
        guard isListening else {
            Glibc.close(socket)
            throw Tool.Failed(status: errno)
        }
        self.socket = socket
        self.port = Int(UInt16(bigEndian: address.sin_port))
    }

    /// Each client is sent what `body` gives, piece by piece, until it is empty; then the connection stays, unless
    /// it `ends`.
    func serve(ends: Bool = false, _ body: @escaping @Sendable (_ piece: Int) -> [UInt8]) {
        Thread.detachNewThread { [socket, self] in
            while true {
                let client = Glibc.accept(socket, nil, nil)
                guard client >= 0 else { return }
                accepted.withLock { $0.append(client) }
                Thread.detachNewThread {
                    for piece in 0... {
                        let bytes = body(piece)
                        if bytes.isEmpty {
                            if ends { shutdown(client, Int32(SHUT_RDWR)) }
                            return
                        }
                        guard send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) > 0 else { return }
                    }
                }
            }
        }
    }

    func close() {
        shutdown(socket, Int32(SHUT_RDWR))
        Glibc.close(socket)
        for client in accepted.withLock({ $0 }) {
            shutdown(client, Int32(SHUT_RDWR))
            Glibc.close(client)
        }
        accepted.withLock { $0 = [] }
    }
}
