import Glibc

/// What the control thread is doing, should it crash: `odd (misbehave) was being made`.
///
/// Written by the control thread alone, read by the signal handler of ``CrashReport``; C memory, since a handler can
/// not wait for a lock that a `String` might need.
public enum CrashNote {
    /// Set once, before any plugin is loaded; without a handler nothing is noted.
    nonisolated(unsafe) private static var isWanted = false
    nonisolated(unsafe) private(set) static var text: UnsafeMutablePointer<CChar>?

    /// [main thread] From here on notes are kept.
    static func enable() { isWanted = true }

    /// [control thread] A crash inside `body` is told with `what`.
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
