// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RTSPSink
import ServerAccess

private let second: Int64 = 1_000_000_000

@Suite struct FailedLoginsTests {
    private let anna = IPAddress("10.0.0.1")!

    @Test func tellsOfTheFirstAtOnceAndOfTheRestAtIntervals() {
        var failures = FailedLogins()
        #expect(failures.takeNews(now: 0).isEmpty)
        failures.add(anna, "/live")
        #expect(failures.takeNews(now: 0) == [.init(address: anna, path: "/live", count: 1, total: 1)])
        for step in 1...9 {
            for _ in 0..<100 { failures.add(anna, "/live") }
            #expect(failures.takeNews(now: Int64(step) * second).isEmpty)
        }
        #expect(failures.takeNews(now: 10 * second) == [.init(address: anna, path: "/live", count: 900, total: 901)])
        #expect(failures.totals == ["/live": 901])
    }

    @Test func tellsAddressesAndPathsApart() {
        var failures = FailedLogins()
        failures.add(anna, "/live")
        failures.add(.loopback, "/live")
        failures.add(anna, "/other")
        #expect(
            failures.takeNews(now: 0) == [
                .init(address: anna, path: "/live", count: 1, total: 1),
                .init(address: .loopback, path: "/live", count: 1, total: 1),
                .init(address: anna, path: "/other", count: 1, total: 1),
            ])
        #expect(failures.totals == ["/live": 2, "/other": 1])
    }

    /// A hundred thousand addresses that each try once: at most four news a second, and none is lost from the totals.
    @Test func isNoFloodHoweverManyAddressesTry() {
        var failures = FailedLogins()
        for number in 0..<100_000 { failures.add(IPAddress(v4: UInt32(0x0a00_0000 + number)), "/live") }
        var told = 0
        for step in 0..<1000 {
            let news = failures.takeNews(now: Int64(step) * second)
            #expect(news.count <= FailedLogins.mostNews)
            told += news.reduce(0) { $0 + $1.count }
        }
        #expect(told == 100_000)
        #expect(failures.totals == ["/live": 100_000])
    }

    @Test func leavesNothingUntoldAtTheEndOfAPath() {
        var failures = FailedLogins()
        for number in 0..<100 { failures.add(IPAddress(v4: UInt32(number)), "/live") }
        failures.add(anna, "/other")
        let news = failures.takeNews(now: 0, endOf: "/live")
        #expect(news.count == FailedLogins.mostNews + 1)
        #expect(news.reduce(0) { $0 + $1.count } == 100)
        #expect(news.allSatisfy { $0.path == "/live" })
        #expect(failures.takeNews(now: 0).map(\.path) == ["/other"])
    }
}
