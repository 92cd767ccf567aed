// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// What is being planned or loaded, should it crash: `odd (misbehave) was being made`.
///
/// Threads that plan write it: the control thread, and the desk's of each chain, of which several may plan at once. The
/// signal handler of ``CrashReport`` reads the newest note. It is C memory, since a handler cannot wait for a lock that a
/// `String` might need.
public enum CrashNote {
    /// Set once, before any plugin is loaded; without a handler nothing is noted.
    nonisolated(unsafe) private static var isWanted = false
    /// The newest of ``notes``.
    nonisolated(unsafe) private(set) static var text: UnsafeMutablePointer<CChar>?
    /// Addresses of their texts, the newest last.
    private static let notes = Mutex<[UInt]>([])

    /// [main thread] From here on notes are kept.
    static func enable() { isWanted = true }

    /// [a thread that plans] Runs `body`; the report of a crash inside it says `what`.
    public static func during<Result>(_ what: @autoclosure () -> String, _ body: () throws -> Result) rethrows -> Result
    {
        guard isWanted else { return try body() }
        let note = UInt(bitPattern: strdup(what()))
        begin(note)
        defer { end(note) }
        return try body()
    }

    private static func begin(_ note: UInt) {
        notes.withLock { notes in
            notes.append(note)
            text = UnsafeMutablePointer(bitPattern: note)
        }
    }

    private static func end(_ note: UInt) {
        notes.withLock { notes in
            notes.removeAll { $0 == note }
            text = notes.last.flatMap { UnsafeMutablePointer(bitPattern: $0) }
            free(UnsafeMutablePointer<CChar>(bitPattern: note))
        }
    }
}
