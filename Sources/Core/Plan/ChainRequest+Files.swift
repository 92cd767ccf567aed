// SPDX-License-Identifier: Apache-2.0

extension ChainRequest {
    /// [control thread] The files that the stages read, as far as their options say (``StageDemand/readsFiles``), in the
    /// order of the stages. Makes every stage and negotiates nothing, so it opens none of the files.
    ///
    /// - Throws: What a stage throws whose options are wrong.
    public func filesRead() throws -> [String] {
        try stages.flatMap { stage in
            let context = StageContext(stageID: stage.id, folder: folder, chainName: name)
            let instance = try stage.type.make(stage.options, { stage.place(file: file, of: $0, at: $1) }, context)
            return instance.stage.demand.readsFiles
        }
    }
}
