;; Has nine memories, all but one of them empty, and judges well.
(memory 0) (memory 0) (memory 0) (memory 0) (memory 0) (memory 0) (memory 0) (memory 0)
