// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Crowds of clients: none may harm the chain, another client or the machine.
@Suite(.serialized) struct RTSPHarmTests {
    private static let joins = Repository.root.appending(path: "Tests/Soak/rtsp-joins.py").path

    /// Processor time of a process so far, in seconds (proc(5)).
    private static func processorTime(_ pid: pid_t) throws -> Double {
        let text = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
        let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
        return Double((Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0)) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    private static func connect(_ port: Int) -> Int32 {
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let socket = socket(AF_INET, flags, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        // More than may wait to be accepted: the rest go on trying.
        #expect(result == 0 || errno == EINPROGRESS, "\(String(cString: strerror(errno)))")
        return socket
    }

    /// More connections than there are descriptors: a loop that tried to accept again and again would take a whole
    /// core.
    @Test(.needs(.ffmpeg), .needs(.curl)) func staysCalmWithoutDescriptors() throws {
        let stream = try RTSPStream(descriptors: 50)
        let player = try Program(URL(fileURLWithPath: Tool.ffmpeg.path ?? "")).start([
            "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i", stream.url, "-t", "6", "-f", "null", "-",
        ])
        try stream.program.waitForOutput(#""event":"client-joined""#)
        let crowd = (0..<200).map { _ in Self.connect(stream.port) }
        try stream.program.waitForOutput("the last descriptors of the process are kept for the chain's own work")
        // Half a core at most, in processor time: a busy machine gives it less.
        let (begin, used) = (Date(), try Self.processorTime(stream.program.pid))
        stream.program.listen(seconds: 3)
        #expect(try Self.processorTime(stream.program.pid) - used < 0.5 * Date().timeIntervalSince(begin))
        #expect(try player.finish().status == 0)
        for socket in crowd { close(socket) }
        #expect(try Tool.curl.run("-sS", "-i", "--max-time", "50", stream.url).output.contains("RTSP/1.0 200 OK"))
        _ = try stream.finish()
    }

    /// At the end everybody is sent away and the port is free: the same chain starts again at once.
    @Test(.needs(.python)) func endsWhileClientsComeAndGoAndStartsAgainAtOnce() throws {
        let port = try RTSPStream.freePort()
        let clients = try Program(URL(fileURLWithPath: Tool.python.path ?? "")).start([
            Self.joins, "--at", "\(port)", "--seconds", "600",
        ])
        for _ in 0..<4 {
            let stream = try RTSPStream(port: port)
            try stream.program.waitForOutput(#""event":"client-left""#)
            stream.program.listen(seconds: 0.5)
            stream.program.send(SIGTERM)
            let outcome = try stream.program.finish()
            #expect(outcome.isDoneOrBusy, "\(outcome.error)")
            #expect(!outcome.error.contains("the drain did not finish"), "\(outcome.error)")
            // NIO says so where somebody hands a loop work that has ended.
            #expect(!outcome.error.contains("EventLoop"), "\(outcome.error)")
        }
        #expect(clients.isRunning)
        clients.send(SIGKILL)
        _ = try clients.finish()
    }

    /// `make soak` has a hundred thousand.
    @Test(.needs(.python), .timeLimit(.minutes(60))) func keepsNothingOfClientsThatHaveLeft() throws {
        let outcome = try Tool.python.run(
            [Self.joins, "--joins", "2000", "--stops", "2", "--program", try Repository.executable.path], timeout: 1500)
        #expect(outcome.status == 0, "\(outcome.output)\(outcome.error)")
    }
}
