// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import RTSPSink
import ServerAccess

/// A client's pair of UDP ports.
final class DatagramReceiver {
    private var sockets: [Int32] = []
    private(set) var port = 0
    var client: RTSPTestClient?

    init() throws {
        for _ in 0..<100 {
            let candidate = Int.random(in: 5000...9000) * 2
            let pair = [candidate, candidate + 1].map { port -> Int32 in
                let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
                let storage = SocketAddressStorage(IPAddress("127.0.0.1")!, port: UInt16(port), isIPv6: false)
                return bind(socket, storage.generic, storage.byteCount) == 0 ? socket : -1
            }
            guard pair.allSatisfy({ $0 >= 0 }) else { continue }
            (sockets, port) = (pair, candidate)
            return
        }
        throw RTSPTestClient.Fault(what: "no free pair of ports")
    }

    deinit { for socket in sockets { close(socket) } }

    /// The NAL units of the next `count` access units; throws after so many seconds without a datagram.
    func units(_ count: Int, seconds: Int = 60) throws -> [[[UInt8]]] {
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var units: [[[UInt8]]] = []
        var depacketizer = H264Depacketizer()
        var buffer = [UInt8](repeating: 0, count: 65536)
        while units.count < count {
            let byteCount = recv(sockets[0], &buffer, buffer.count, 0)
            guard byteCount > 12, let header = RTPHeader(buffer) else {
                throw RTSPTestClient.Fault(what: "nothing came")
            }
            try depacketizer.add(Array(buffer[12..<byteCount]))
            guard header.marker else { continue }
            units.append(depacketizer.units)
            depacketizer = H264Depacketizer()
        }
        return units
    }

    /// The next `count` units of AAC, each ended by its marker bit; throws after a minute without a datagram.
    func soundUnits(_ count: Int) throws -> [[UInt8]] {
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var units: [[UInt8]] = []
        var unit: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while units.count < count {
            let byteCount = recv(sockets[0], &buffer, buffer.count, 0)
            guard byteCount > 16, let header = RTPHeader(buffer) else {
                throw RTSPTestClient.Fault(what: "nothing came")
            }
            unit += buffer[16..<byteCount]
            guard header.marker else { continue }
            units.append(unit)
            unit = []
        }
        return units
    }
}
