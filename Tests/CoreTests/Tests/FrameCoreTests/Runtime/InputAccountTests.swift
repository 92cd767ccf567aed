// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// What a run knows of what it lost: the basis of what `framehost batch` calls done.
@Suite struct InputAccountTests {
    @Test func isWholeOnlyAtTheEndWithoutDamage() {
        var account = InputAccount(promised: 5)
        #expect(!account.isWhole)
        #expect(account.json.text() == #"{"promised":5}"#)
        (account.given, account.hasEnded) = (5, true)
        #expect(account.isWhole)
        #expect(account.json.text() == #"{"promised":5,"given":5,"damaged":0,"whole":true}"#)
        account.damaged = 1
        #expect(!account.isWhole)
        (account.damaged, account.shortfall) = (0, "it ends early")
        #expect(!account.isWhole)
    }

    /// What the stage of a chain chooses to drop is no loss; what a failed one drops is.
    @Test func tellsLossesFromDropsThatTheChainMeans() throws {
        func drops(_ options: String) throws -> [Chain.UnmeantDrop] {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "src", options: #"{"count": 50}"#)
            try sketch.add(ProbeFilter.self, "odd", options: options, onError: .continue)
            try sketch.add(RecordingSink.self, "sink", options: #"{"log": "account"}"#)
            let chain = try Chain(sketch.request)
            _ = ChainTests.run(chain)
            #expect(chain.ledger.isBalanced && chain.inputAccounts.isEmpty)
            return chain.unmeantDrops
        }
        #expect(try drops("{}").isEmpty)
        let lost = try drops(#"{"failAt": 20}"#)
        #expect(lost.map(\.stage) == ["odd"] && lost.map(\.reason) == [.failed], "\(lost)")
        #expect(lost.first?.text == "\(lost.first?.count ?? 0) items were dropped at 'odd' (stage failed)")
    }
}
