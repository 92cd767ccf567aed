// SPDX-License-Identifier: Apache-2.0

import CAVFormat

/// libav's own words, for the cause of a fault.
enum LibavText {
    /// For one of its error codes.
    static func of(_ code: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            av_strerror(code, buffer.baseAddress!, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
    }

    /// The last line that libav had to say during `body`, on this thread. [any thread]
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
