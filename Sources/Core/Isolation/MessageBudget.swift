// SPDX-License-Identifier: Apache-2.0

/// How much of what a process says is heard: 200 messages a second. What is more is counted, and told once. [isolation
/// thread]
struct MessageBudget {
    private var second: Int64 = 0
    private var count = 0
    private var lost = 0
    private static let most = 200

    /// Notes a message.
    ///
    /// - Returns: Whether it is heard, and how many were left out that nobody has been told of.
    mutating func take() -> (isHeard: Bool, lost: Int) {
        let now = MonotonicTime.now() / 1_000_000_000
        if now != second { (second, count) = (now, 0) }
        count += 1
        guard count <= Self.most else {
            lost += 1
            return (false, 0)
        }
        defer { lost = 0 }
        return (true, lost)
    }
}
