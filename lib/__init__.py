"""一个 token 的旅程：大语言模型的每个部件，用 NumPy 写成，一个模块一个想法。

按旅程的顺序读：
    tokenizer      文字 → 词元编号              feedforward    每个词元自己想
    embedding      编号 → 向量                  normalization  归一化
    position       告诉它顺序                   block          残差把它们串成一层
    functional     softmax、激活函数            model          一层层叠成 GPT；checkpoint 读写权重
    attention      词元互相看                   sampling、generation  选出下一个词元，一个接一个
    accounting     参数、计算量、缓存各多大      gradients、training   反向传播，把它训练起来
`plots` 只画图。
"""
