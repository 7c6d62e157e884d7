// Templates, virtual functions, exceptions and the library's containers.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Shape {
	virtual ~Shape() = default;
	virtual unsigned long area(unsigned long n) const = 0;
};
struct Square : Shape {
	unsigned long area(unsigned long n) const override { return n * n; }
};
struct Line : Shape {
	unsigned long area(unsigned long n) const override
	{
		if (n % 97 == 0)
			throw std::runtime_error("none");
		return n;
	}
};

int main()
{
	std::vector<std::unique_ptr<Shape>> shapes;
	std::map<std::string, unsigned long> sums;
	shapes.push_back(std::make_unique<Square>());
	shapes.push_back(std::make_unique<Line>());
	for (unsigned long i = 1; i < 400; i++) {
		try {
			sums["n" + std::to_string(i % 17)] += shapes[i % 2]->area(i);
		} catch (const std::exception &) {
			sums["none"]++;
		}
	}
	std::vector<unsigned long> list;
	for (const auto &[name, sum] : sums)
		list.push_back(sum ^ name.size());
	std::sort(list.begin(), list.end(), [](auto a, auto b) { return a % 7 < b % 7; });
	std::printf("%lu\n", list.front());
}
