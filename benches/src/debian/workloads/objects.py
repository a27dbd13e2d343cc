# A spreadsheet whose cells are objects: classes, methods, attributes, dictionaries and lists of small objects. An
# assignment marks all cells that depend on it, and a look at a cell computes the marked ones again.


class Cell:
    def __init__(self, name):
        self.name = name
        self.readers = []
        self.stale = True
        self.cached = 0

    def mark(self):
        if not self.stale:
            self.stale = True
            for reader in self.readers:
                reader.mark()

    def value(self):
        if self.stale:
            self.cached = self.compute()
            self.stale = False
        return self.cached


class Constant(Cell):
    def __init__(self, name, number):
        super().__init__(name)
        self.number = number

    def assign(self, number):
        self.number = number
        self.mark()

    def compute(self):
        return self.number


class Formula(Cell):
    def __init__(self, name, inputs):
        super().__init__(name)
        self.inputs = inputs
        for cell in inputs:
            cell.readers.append(self)


class Sum(Formula):
    def compute(self):
        total = 0
        for cell in self.inputs:
            total += cell.value()
        return total % 1000003


class Product(Formula):
    def compute(self):
        product = 1
        for cell in self.inputs:
            product = product * (cell.value() | 1) % 1000003
        return product


class Choice(Formula):
    def compute(self):
        condition, yes, no = self.inputs
        return yes.value() if condition.value() % 2 else no.value()


class Sheet:
    def __init__(self, columns, rows):
        self.cells = {}
        above = [self.add(Constant("c%d.0" % column, column * 37 + 11)) for column in range(columns)]
        self.bottom = above
        for row in range(1, rows):
            kind = (Sum, Product, Choice)[row % 3]
            self.bottom = [
                self.add(kind("c%d.%d" % (column, row), [above[column], above[column - 1], above[column - 2]]))
                for column in range(columns)
            ]
            above = self.bottom

    def add(self, cell):
        self.cells[cell.name] = cell
        return cell

    def histogram(self):
        counts = {}
        for name, cell in self.cells.items():
            key = (name[:2], cell.value() % 10)
            counts[key] = counts.get(key, 0) + 1
        return counts


sheet = Sheet(24, 40)
total = 0
for step in range(300):
    sheet.cells["c%d.0" % (step * 7 % 24)].assign(step * step % 1009)
    total = (total * 31 + sum(cell.value() for cell in sheet.bottom)) % 1000000007
    if step % 10 == 0:
        total += sum(count * count for count in sheet.histogram().values())
print(total)
