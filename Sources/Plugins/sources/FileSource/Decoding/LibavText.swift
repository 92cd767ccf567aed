// SPDX-License-Identifier: Apache-2.0

import CAVFormat

/// libav's own texts, for the cause of a fault.
enum LibavText {
    /// The text of an error code.
    static func of(_ code: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            av_strerror(code, buffer.baseAddress!, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
    }

    /// The last line that libav printed on this thread during `body`. [any thread]
    static func during<Result>(_ body: () throws -> Result) rethrows -> (Result, said: String) {
        fh_av_log_begin()
        let result: Result
        do { result = try body() } catch {
            _ = end()
            throw error
        }
        return (result, end())
    }

    private static func end() -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
            fh_av_log_end(buffer.baseAddress!, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
    }
}
