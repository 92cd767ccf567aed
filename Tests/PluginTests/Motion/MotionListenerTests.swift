// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import Motion

/// Over loopback, on ports that are free.
@Suite struct MotionListenerTests {
    /// Sends datagrams from a socket of its own.
    private final class Sender {
        private let socket: Int32
        private let place: SocketPlace

        init(to place: SocketPlace, from address: String = "127.0.0.1") {
            self.place = place
            socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
            var own = sockaddr_in()
            own.sin_family = sa_family_t(AF_INET)
            inet_pton(AF_INET, address, &own.sin_addr)
            _ = withUnsafePointer(to: &own) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }

        deinit { close(socket) }

        func send(_ bytes: [UInt8]) {
            var target = sockaddr_in()
            target.sin_family = sa_family_t(AF_INET)
            target.sin_port = in_port_t(place.port).bigEndian
            inet_pton(AF_INET, place.address, &target.sin_addr)
            _ = withUnsafePointer(to: &target) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(socket, bytes, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }

        func send(_ text: String) { send(Array(text.utf8)) }
    }

    /// A port that nobody uses now.
    private static func freePlace() -> SocketPlace {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(socket, $0, length)
                _ = getsockname(socket, $0, &length)
            }
        }
        return SocketPlace(address: "127.0.0.1", port: Int(in_port_t(bigEndian: address.sin_port)))
    }

    private static func driver(_ place: SocketPlace, clock: ChainClock = ChainClock()) throws -> StageDriver<
        MotionSource
    > {
        try StageDriver(MotionSource.self, options: #"{ "listen": "\#(place.text)" }"#, isLive: true, clock: clock)
    }

    /// The samples that come within `turns` calls.
    private static func samples(_ driver: StageDriver<MotionSource>, turns: Int) throws -> [MotionSample] {
        var samples: [MotionSample] = []
        for _ in 0..<turns {
            _ = try driver.produce()
            while let block = driver.takeMotionBlock() {
                for index in 0..<block.sampleCount { samples.append(block[index]) }
            }
        }
        return samples
    }

    @Test func mapsAForeignClockToTheChains() throws {
        let place = Self.freePlace()
        let driver = try Self.driver(place)
        defer { try? driver.stop() }
        #expect(driver.stage.demand.isLive)
        let sender = Sender(to: place)
        let before = driver.context.clock.now()
        for index in 0..<20 { sender.send(#"{"t":\#(1000 + Double(index) / 100),"gyro":[1,2,3]}"#) }
        let samples = try Self.samples(driver, turns: 3)
        #expect(samples.count == 20)
        let times = samples.map(\.time.nanoseconds)
        // All came at once; the last one's delay is the least by its stamp.
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        #expect(times.last! <= driver.context.clock.now() && times.last! > before - 1_000_000_000)
    }

    @Test func withoutAStampTheArrivalCounts() throws {
        let place = Self.freePlace()
        let driver = try Self.driver(place)
        defer { try? driver.stop() }
        let before = driver.context.clock.now()
        Sender(to: place).send(#"{"accel":[0,0,9.81]}"#)
        let samples = try Self.samples(driver, turns: 2)
        #expect(samples.count == 1 && samples[0].contents == .acceleration)
        #expect((before...driver.context.clock.now()).contains(samples[0].time.nanoseconds))
    }

    @Test func whatIsNoMotionIsToldOnceASecond() throws {
        let place = Self.freePlace()
        let driver = try Self.driver(place, clock: ManualClock(at: 1_000_000_000))
        defer { try? driver.stop() }
        let sender = Sender(to: place)
        sender.send([0xFF, 0, 1])
        for length in [0, 1, 100, 20_000, 60_000] { sender.send([UInt8](repeating: UInt8(ascii: "["), count: length)) }
        sender.send(#"{"gyro":[1,2,3]}"#)
        let samples = try Self.samples(driver, turns: 2)
        #expect(samples.count == 1)
        let told = driver.takeEvents().filter { $0.name == "datagrams-refused" }
        #expect(told.count == 1 && told.first?.text.contains("A datagram from 127.0.0.1:") == true)
        // Those of the last second are told at the end.
        try driver.stop()
        let rest = driver.takeEvents().filter { $0.name == "datagrams-refused" }
        #expect(rest.count == 1 && (rest.first?.details["count"]?.asInt ?? 0) >= 4)
    }

    @Test func aJumpOfTheClockIsToldAndTheTimesStillRise() throws {
        let place = Self.freePlace()
        let driver = try Self.driver(place)
        defer { try? driver.stop() }
        let sender = Sender(to: place)
        for stamp in [1000.0, 1000.01, 2000, 2000.01, 5, 5.01] { sender.send(#"{"t":\#(stamp),"gyro":[1,2,3]}"#) }
        let samples = try Self.samples(driver, turns: 3)
        let times = samples.map(\.time.nanoseconds)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 } && times.count >= 2)
        #expect(driver.takeEvents().contains { $0.name == "clock-jumped" })
    }

    @Test func onlyOneSenderAtATime() throws {
        let place = Self.freePlace()
        let driver = try Self.driver(place, clock: ManualClock(at: 1_000_000_000))
        defer { try? driver.stop() }
        Sender(to: place).send(#"{"t":1,"gyro":[1,2,3]}"#)
        _ = try Self.samples(driver, turns: 1)
        Sender(to: place, from: "127.0.0.2").send(#"{"t":500,"gyro":[1,2,3]}"#)
        _ = try Self.samples(driver, turns: 1)
        let told = driver.takeEvents().first { $0.name == "datagrams-refused" }
        #expect(
            told?.text.contains(
                "comes while 127.0.0.1 sends, and there can be only one sender at a time. Stop one of the two senders.")
                == true)
    }

    @Test func silenceAndReturnAreTold() throws {
        let clock = ManualClock(at: 1_000_000_000)
        let place = Self.freePlace()
        let driver = try Self.driver(place, clock: clock)
        defer { try? driver.stop() }
        let reason = "no samples have come at \(place.text) for a second"
        let lost =
            #"There is no motion: \#(reason). The stage keeps waiting. Check that the phone or program sends to this machine and port. {"reason":"\#(reason)"}"#
        let sender = Sender(to: place)
        // Silent for a second and a half, then for a second, then for a little more.
        for (silence, said) in [
            (1500, [lost, #"Motion comes again, after 1500 ms. {"awayMs":1500}"#]), (1000, []),
            (1001, [lost, #"Motion comes again, after 1001 ms. {"awayMs":1001}"#]),
        ] {
            clock.advance(to: clock.now() + Int64(silence) * 1_000_000)
            _ = try driver.produce()
            _ = try driver.produce()
            #expect(driver.context.recovering == (said.isEmpty ? nil : reason))
            sender.send(#"{"t":1,"gyro":[1,2,3]}"#)
            _ = try Self.samples(driver, turns: 2)
            let told = driver.takeEvents().filter { $0.name.hasPrefix("motion-") }
            #expect(told.map { "\($0.text) \($0.details.text())" } == said)
            #expect(told.map(\.name) == (said.isEmpty ? [] : ["motion-lost", "motion-returned"]))
            #expect(driver.context.recovering == nil)
        }
    }

    @Test func aPlaceThatIsTakenIsAFault() throws {
        let place = Self.freePlace()
        let driver = try Self.driver(place)
        defer { try? driver.stop() }
        #expect { _ = try Self.driver(place) } throws: {
            "\($0)"
                == "listen: nothing can be received at \(place.text): Address already in use. Use another port, or end the program that uses this one. If the stage that you are changing uses this port itself, restart the chain to apply the change."
        }
        #expect { _ = try Self.driver(SocketPlace(address: "203.0.113.7", port: place.port)) } throws: {
            "\($0)".contains("Use an address of this machine")
        }
    }
}
