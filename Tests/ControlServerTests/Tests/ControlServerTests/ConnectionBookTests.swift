// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import ServerAccess
import Testing

@testable import ControlServer
@testable import FrameCore

@Suite struct ConnectionBookTests {
    private typealias Book = ConnectionBook<Int>
    private let home = PeerAddress(v4: 1)
    private let shop = PeerAddress(v4: 2)
    private static let second: Int64 = 1_000_000_000

    private func book(_ all: Int, perAddress: Int = 64) -> Book {
        var limits = Book.Limits()
        (limits.all, limits.strangersPerAddress) = (all, perAddress)
        return Book(limits)
    }

    @Test func strangersOfOneAddressPushOutEachOther() {
        var book = book(100, perAddress: 2)
        #expect(book.open(1, home, now: 1) == .taken(pushedOut: nil))
        #expect(book.open(2, home, now: 2) == .taken(pushedOut: nil))
        #expect(book.open(3, shop, now: 3) == .taken(pushedOut: nil))
        #expect(book.open(4, home, now: 4) == .taken(pushedOut: 1))
        book.beginAnswer(2)
        #expect(book.open(5, home, now: 5) == .taken(pushedOut: 4), "one that is being answered comes last")
        #expect(book.count == 3)
    }

    @Test func whoHasTheTokenIsPushedOutByNobody() {
        var book = book(4)
        for key in 1...3 {
            #expect(book.open(key, home, now: 0) == .taken(pushedOut: nil))
            book.welcome(key)
        }
        for key in 4...50 {
            #expect(book.open(key, shop, now: Int64(key)) == .taken(pushedOut: key == 4 ? nil : key - 1))
        }
        #expect(Set(book.keys) == [1, 2, 3, 50])
    }

    @Test func keepsPlacesForWhoHasTheToken() {
        var book = book(8)
        for key in 1...20 { _ = book.open(key, PeerAddress(v4: UInt32(key)), now: Int64(key)) }
        #expect(book.count == 6)
        book.welcome(20)
        #expect(book.open(21, home, now: 21) == .taken(pushedOut: nil))
    }

    @Test func refusesWhereAllAreAtWork() {
        var book = book(2)
        for key in 1...2 {
            _ = book.open(key, home, now: 0)
            book.welcome(key)
        }
        #expect(book.open(3, home, now: Self.second) == .refused, "each may be about to ask")
        book.beginAnswer(1)
        #expect(book.open(3, home, now: 11 * Self.second) == .taken(pushedOut: 2))
        book.welcome(3)
        book.beginAnswer(3)
        #expect(book.open(4, home, now: 99 * Self.second) == .refused)
    }

    @Test func silentStrangersGo() {
        var book = book(100)
        for key in 1...3 { _ = book.open(key, home, now: 0) }
        book.welcome(1)
        book.beginAnswer(2)
        #expect(book.expire(now: 10 * Self.second) == [])
        #expect(book.expire(now: 11 * Self.second) == [3])
        book.endAnswer(2, now: 11 * Self.second)
        #expect(book.expire(now: 21 * Self.second) == [])
        #expect(book.expire(now: 22 * Self.second) == [2])
        #expect(book.keys == [1])
    }

    /// With the last descriptors somebody has to go for each newcomer.
    @Test func makesRoomWhereDescriptorsAreShort() {
        var book = book(100)
        #expect(book.open(1, home, isShort: true, now: 0) == .refused)
        _ = book.open(1, home, now: 0)
        #expect(book.open(2, home, isShort: true, now: 0) == .taken(pushedOut: 1))
        book.welcome(2)
        #expect(book.open(3, home, isShort: true, now: 0) == .refused)
    }

    /// What is pushed out leaves a low number to the next one, which must not count as if there were enough again.
    @Test func staysShortWhileOneKeepsALastDescriptor() {
        var book = book(100)
        for key in 1...5 { _ = book.open(key, home, now: Int64(key)) }
        #expect(book.open(6, home, isShort: true, now: 6) == .taken(pushedOut: 1))
        for key in 7...40 {
            #expect(book.open(key, key % 2 == 0 ? home : shop, isShort: key % 2 == 0, now: Int64(key)) != .refused)
            #expect(book.count == 5)
        }
        for key in book.keys { book.close(key) }
        #expect(book.open(50, home, now: 50) == .taken(pushedOut: nil))
        #expect(book.open(51, home, now: 51) == .taken(pushedOut: nil))
    }

    @Test func aNetworkIsOneAddress() {
        let one = PeerAddress(v6: [0x20, 1] + [UInt8](repeating: 0, count: 13) + [1])
        #expect(one == PeerAddress(v6: [0x20, 1] + [UInt8](repeating: 0, count: 13) + [2]))
        #expect(one != PeerAddress(v6: [0x20, 2] + [UInt8](repeating: 0, count: 13) + [1]))
        let mapped: [UInt8] = [UInt8](repeating: 0, count: 10) + [255, 255, 10, 0, 0, 7]
        #expect(PeerAddress(v6: mapped) == PeerAddress(v4: 0x0a00_0007))
    }
}

@Suite struct AnswerMemoryTests {
    /// A clock that a test sets, and the readers that were dropped.
    private final class Scene: Sendable {
        let time = Locked<Int64>(0)
        let dropped = Locked<[String]>([])
        let memory: AnswerMemory

        init(most: Int) {
            memory = AnswerMemory(most: most, now: { [time] in time.withLock { $0 } })
        }

        func reader(_ name: String, holds: Int) -> AnswerMemory.Reader {
            memory.reader(holds: holds) { [dropped] in dropped.withLock { $0.append(name) } }
        }
    }

    @Test func whatIsSharedCountsOnce() throws {
        let scene = Scene(most: 100)
        var pieces = [try #require(scene.memory.piece([UInt8](repeating: 1, count: 60)))]
        pieces += [AnswerMemory.Piece](repeating: pieces[0], count: 150)
        #expect(scene.memory.used == 60)
        pieces = []
        #expect(scene.memory.used == 0)
    }

    @Test func thePictureIsLostFirstAndThenTheSlowReadersConnection() throws {
        let scene = Scene(most: 100)
        let held = try #require(scene.memory.piece([UInt8](repeating: 1, count: 60)))
        let readers = [scene.reader("first", holds: 60), scene.reader("second", holds: 60)]
        #expect(scene.memory.piece([UInt8](repeating: 2, count: 60)) == nil)
        #expect(scene.dropped.withLock { $0 } == [], "they have had no time to read")
        scene.time.withLock { $0 = AnswerMemory.patience }
        readers[0].progressed(holds: 30)
        #expect(scene.memory.piece([UInt8](repeating: 2, count: 60)) == nil)
        #expect(scene.dropped.withLock { $0 } == ["second"])
        withExtendedLifetime((held, readers)) {}
    }

    @Test func onePictureAloneHasRoom() {
        let memory = AnswerMemory(most: 10)
        #expect(memory.piece([UInt8](repeating: 1, count: 1000)) != nil)
        #expect(memory.used == 0)
    }
}
