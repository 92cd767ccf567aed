// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the control thread is doing, should it crash: `odd (misbehave) was being made`.
///
/// Only the control thread writes it, and the signal handler of ``CrashReport`` reads it. It is C memory, since a
/// handler cannot wait for a lock that a `String` might need.
public enum CrashNote {
    /// Set once, before any plugin is loaded; without a handler nothing is noted.
    nonisolated(unsafe) private static var isWanted = false
    nonisolated(unsafe) private(set) static var text: UnsafeMutablePointer<CChar>?

    /// [main thread] From here on notes are kept.
    static func enable() { isWanted = true }

    /// [control thread] Runs `body`; the report of a crash inside it says `what`.
    public static func during<Result>(_ what: @autoclosure () -> String, _ body: () throws -> Result) rethrows -> Result
    {
        guard isWanted else { return try body() }
        let outer = text
        text = strdup(what())
        defer {
            free(text)
            text = outer
        }
        return try body()
    }
}
