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
    private static let notes = Mutex<[(address: UInt, subject: String, doing: String, since: Int64)]>([])

    /// [any thread] Who is doing what, and for how long, in nanoseconds; nil if the process neither plans nor loads.
    public static var current: (subject: String, doing: String, nanoseconds: Int64)? {
        notes.withLock { $0.last }.map { ($0.subject, $0.doing, ChainClock.system.now() - $0.since) }
    }

    /// [main thread] From here on notes are kept.
    static func enable() { isWanted = true }

    /// [a thread that plans] Runs `body`; the report of a crash inside it says that `subject` was `doing`.
    public static func during<Result>(
        _ subject: @autoclosure () -> String, _ doing: @autoclosure () -> String, _ body: () throws -> Result
    ) rethrows -> Result {
        guard isWanted else { return try body() }
        let note = begin(subject(), doing())
        defer { end(note) }
        return try body()
    }

    private static func begin(_ subject: String, _ doing: String) -> UInt {
        let note = UInt(bitPattern: strdup("\(subject) was \(doing)"))
        notes.withLock { notes in
            notes.append((note, subject, doing, ChainClock.system.now()))
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
