// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Notes what is being planned or loaded, for the report of a crash: `odd (misbehave) was being made`.
///
/// Threads that plan write it: the control thread, and the desk's thread of each chain. Several may plan at once.
/// The signal handler of ``CrashReport`` reads the newest note. It is C memory, since a handler cannot wait for a
/// lock that a `String` might need.
public enum CrashNote {
    /// Set once, before any plugin is loaded; without a handler nothing is noted.
    nonisolated(unsafe) private static var isWanted = false
    /// The newest of ``notes``.
    nonisolated(unsafe) private(set) static var text: UnsafeMutablePointer<CChar>?
    /// The address of each note's text, the text, and since when it holds; the newest last.
    private static let notes = Mutex<[(address: UInt, what: String, since: Int64)]>([])

    /// [any thread] What the process is doing and for how long, in nanoseconds; nil where it neither plans nor
    /// loads.
    public static var current: (what: String, nanoseconds: Int64)? {
        notes.withLock { $0.last.map { ($0.what, $0.since) } }.map { ($0.0, ChainClock.system.now() - $0.1) }
    }

    /// [main thread] From here on notes are kept.
    static func enable() { isWanted = true }

    /// [a thread that plans] Runs `body`; the report of a crash inside it says `what`.
    public static func during<Result>(_ what: @autoclosure () -> String, _ body: () throws -> Result) rethrows -> Result
    {
        guard isWanted else { return try body() }
        let note = begin(what())
        defer { end(note) }
        return try body()
    }

    private static func begin(_ what: String) -> UInt {
        let note = UInt(bitPattern: strdup(what))
        notes.withLock { notes in
            notes.append((note, what, ChainClock.system.now()))
            text = UnsafeMutablePointer(bitPattern: note)
        }
        return note
    }

    private static func end(_ note: UInt) {
        notes.withLock { notes in
            notes.removeAll { $0.address == note }
            text = notes.last.flatMap { UnsafeMutablePointer(bitPattern: $0.address) }
            free(UnsafeMutablePointer<CChar>(bitPattern: note))
        }
    }
}
